"""Operators as functions: ``fn.resize(images, size=(224, 224))``; one function for each registered operator.

All other names are private, so that `dir` of the module lists operators only.
"""

from __future__ import annotations

import inspect as _inspect
from collections.abc import Callable as _Callable
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from penstock.schema import Schema as _Schema
from penstock.schema.declaration import snake_case as _snake_case
from penstock.schema.documentation import docstring as _docstring
from penstock.schema.documentation import signature as _signature
from penstock.schema.namespaces import Namespace as _Namespace
from penstock.schema.namespaces import find_written_out as _find_written_out
from penstock.schema.registry import offer_package as _offer_package

if _TYPE_CHECKING:
    from penstock.external_source import external_source

__all__ = ["external_source"]


def _make_function(schema: _Schema) -> _Callable[..., _Any]:
    """Return the function that calls the operator of ``schema``."""
    from penstock.graph import call_operator

    def call(*inputs: _Any, device: str | None = None, name: str | None = None, **arguments: _Any) -> _Any:
        return call_operator(schema, inputs, arguments, device, name)

    call.__name__ = call.__qualname__ = schema.fn_path.rpartition(".")[2]
    call.__module__ = ".".join((__name__, *schema.fn_path.split(".")[:-1]))
    call.__doc__ = _docstring(schema)
    call.__signature__ = _signature(schema)  # type: ignore[attr-defined]
    return call


def _takes_only(function: _Callable[..., _Any], schema: _Schema) -> bool:
    """Return whether the schema declares all parameters of a hand-written function; the schema may declare more, for
    ``**arguments``.
    """
    named = {own.name for own in _inspect.signature(function).parameters.values() if own.kind is own.KEYWORD_ONLY}
    return named <= {"device", "name", *schema.all_arguments}


def _make(schema: _Schema) -> _Any:
    """Return the function for an operator: a hand-written one, or a generated one."""
    from penstock import external_source, python_function, tfrecord  # noqa: F401  (register what is written out)

    function: _Any = _find_written_out(f"fn.{schema.fn_path}")
    if function is None:
        function = _make_function(schema)
    elif _takes_only(function, schema):
        function.__signature__ = _signature(schema)
    function._schema_name = schema.name  # private: DALI's name, which tools ask for
    return function


__path__: list[str] = []
_offer_package("penstock.operators")
_namespace = _Namespace(__name__, lambda entry: entry.fn_path, _make)


def __getattr__(name: str) -> _Any:
    return _namespace.find(__name__, name)


def __dir__() -> list[str]:
    return _namespace.names(__name__)


# Tools written for DALI use this name.
_to_snake_case = _snake_case
