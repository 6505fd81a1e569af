"""Operators as functions: ``fn.resize(images, size=(224, 224))``; one for each registered operator.

All other names are private, so that listing the module lists operators.
"""

from __future__ import annotations

import inspect as _inspect
from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import NoReturn as _NoReturn

from penstock import python_function as _python_function  # noqa: F401  (registers what is written out)
from penstock import tfrecord as _tfrecord  # noqa: F401
from penstock.external_source import external_source
from penstock.graph import call_operator as _call_operator
from penstock.schema import Schema as _Schema
from penstock.schema.declaration import snake_case as _snake_case
from penstock.schema.documentation import docstring as _docstring
from penstock.schema.documentation import signature as _signature
from penstock.schema.namespaces import find_written_out as _find_written_out
from penstock.schema.namespaces import no_such_operator as _no_such_operator
from penstock.schema.namespaces import submodule as _submodule
from penstock.schema.registry import load_package as _load_package
from penstock.schema.registry import subscribe as _subscribe

__all__ = ["external_source"]


def _make_function(schema: _Schema) -> _Callable[..., _Any]:
    """The function that calls the operator of ``schema``."""

    def call(*inputs: _Any, device: str | None = None, name: str | None = None, **arguments: _Any) -> _Any:
        return _call_operator(schema, inputs, arguments, device, name)

    call.__name__ = call.__qualname__ = schema.fn_path.rpartition(".")[2]
    call.__module__ = ".".join((__name__, *schema.fn_path.split(".")[:-1]))
    call.__doc__ = _docstring(schema)
    call.__signature__ = _signature(schema)  # type: ignore[attr-defined]
    return call


def _takes_only(function: _Callable[..., _Any], schema: _Schema) -> bool:
    """Whether all that a function written out takes is named in the schema: it may leave the rest to ``**arguments``."""
    named = {own.name for own in _inspect.signature(function).parameters.values() if own.kind is own.KEYWORD_ONLY}
    return named <= {"device", "name", *schema.all_arguments}


def _publish(schema: _Schema) -> None:
    path, _, name = schema.fn_path.rpartition(".")
    module = _submodule(__name__, path)
    function = _find_written_out(f"fn.{schema.fn_path}")
    if function is None:
        function = _make_function(schema)
    elif _takes_only(function, schema):
        function.__signature__ = _signature(schema)  # type: ignore[attr-defined]
    function._schema_name = schema.name  # type: ignore[attr-defined]  # private: DALI's name, which tools ask for
    setattr(module, name, function)
    if schema.is_unlisted:
        setattr(_submodule(__name__, f"{path}.hidden" if path else "hidden"), name, function)


def __getattr__(name: str) -> _NoReturn:
    _no_such_operator(__name__, name)


# Tools written for DALI look this name up.
_to_snake_case = _snake_case

__path__: list[str] = []
_load_package("penstock.operators")
_subscribe(_publish)
