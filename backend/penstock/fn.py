"""Operators as functions: ``fn.resize(images, size=(224, 224))``; one for each operator that is registered."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from penstock.external_source import external_source
from penstock.graph import call_operator
from penstock.python_function import dl_tensor_python_function, numba_function, python_function, torch_python_function
from penstock.schema import Schema
from penstock.schema.documentation import docstring, signature
from penstock.schema.registry import load_package, subscribe
from penstock.tfrecord import read as read_tfrecord
from penstock.tfrecord import read_by_old_name as read_tfrecord_by_old_name

__all__ = ["external_source"]

_SPECIAL: dict[str, Callable[..., Any]] = {
    "dl_tensor_python_function": dl_tensor_python_function,
    "external_source": external_source,
    "numba_function": numba_function,
    "python_function": python_function,
    "readers.tfrecord": read_tfrecord,
    "tfrecord_reader": read_tfrecord_by_old_name,
    "torch_python_function": torch_python_function,
}


def _make_function(schema: Schema) -> Callable[..., Any]:
    """The function that calls the operator of ``schema``."""

    def call(*inputs: Any, device: str | None = None, name: str | None = None, **arguments: Any) -> Any:
        return call_operator(schema, inputs, arguments, device, name)

    call.__name__ = call.__qualname__ = schema.fn_path.rpartition(".")[2]
    call.__module__ = ".".join((__name__, *schema.fn_path.split(".")[:-1]))
    call.__doc__ = docstring(schema)
    call.__signature__ = signature(schema)  # type: ignore[attr-defined]
    call._schema_name = schema.name  # type: ignore[attr-defined]
    return call


def submodule(root: str, path: str) -> ModuleType:
    """The module ``root.path``, made if need be, so that it can also be imported."""
    module = sys.modules[root]
    # Not by the built-in `filter`: in this module that is an operator.
    for part in path.split(".") if path else ():
        name = f"{module.__name__}.{part}"
        child = sys.modules.get(name)
        if child is None:
            child = ModuleType(name, f"Operators of the family `{part}`.")
            child.__path__ = []
            sys.modules[name] = child
        if not isinstance(getattr(module, part, None), ModuleType):
            setattr(module, part, child)
        module = child
    return module


def _publish(schema: Schema) -> None:
    path, _, name = schema.fn_path.rpartition(".")
    module = submodule(__name__, path)
    function = _SPECIAL.get(schema.fn_path) or _make_function(schema)
    setattr(module, name, function)
    if schema.is_unlisted:
        setattr(submodule(__name__, f"{path}.hidden" if path else "hidden"), name, function)


def signature_of(path: str) -> inspect.Signature:
    """The signature of the function at ``path``, e.g. ``"decoders.image"``."""
    target: Any = sys.modules[__name__]
    for part in path.split("."):
        target = getattr(target, part)
    return inspect.signature(target)


__path__: list[str] = []
load_package("penstock.operators")
subscribe(_publish)
