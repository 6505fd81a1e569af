"""Sends callbacks to other processes: functions that the other side cannot import travel with their code."""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

__all__ = ["dumps", "loads", "pickle_by_value"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "_penstock_pickle_by_value"


def pickle_by_value(fun: _Function) -> _Function:
    """Decorator: a parallel external source takes this function along instead of importing it in its workers.

    It is for functions of modules that the workers cannot import, of a notebook for example. Lambdas and local functions need
    no mark.
    """
    if not isinstance(fun, FunctionType):
        raise TypeError(f"Only functions can be set to be pickled by value, this is a `{type(fun).__name__}`")
    setattr(fun, _MARK, True)
    return fun


def dumps(callback: Any, protocol: int | None = None) -> bytes:
    """The callback as bytes for :func:`loads` in another process that runs the same Python."""
    stream = io.BytesIO()
    _Pickler(stream, protocol).dump(callback)
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """What :func:`dumps` made bytes of."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    """Takes along what standard pickling refuses: modules, local functions and their variables."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, CellType):
            return _empty_cell, (), obj.cell_contents, None, None, _fill_cell
        if isinstance(obj, FunctionType) and _goes_by_value(obj):
            return _reduced(obj)
        return NotImplemented


def _goes_by_value(function: FunctionType) -> bool:
    if getattr(function, _MARK, False) or function.__name__ == "<lambda>":
        return True
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not function


def _reduced(function: FunctionType) -> tuple[Any, ...]:
    code = function.__code__
    scope = {name: function.__globals__[name] for name in _names(code) if name in function.__globals__}
    state = {
        "globals": scope,
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "attributes": function.__dict__,
    }
    made_of = (marshal.dumps(code), function.__name__, function.__qualname__, function.__module__, function.__closure__)
    return _function, made_of, state, None, None, _complete


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function and those inside of it may look up among the globals."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


# -- on the other side ---------------------------------------------------------------------------------------------------


def _function(code: bytes, name: str, qualname: str, module: str, closure: tuple[CellType, ...] | None) -> FunctionType:
    function = FunctionType(
        marshal.loads(code), {"__builtins__": __builtins__, "__name__": module}, name, None, closure
    )
    function.__qualname__ = qualname
    return function


def _complete(function: FunctionType, state: dict[str, Any]) -> None:
    """Gives a function what may refer to the function itself, now that it exists."""
    function.__globals__.update(state["globals"])
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    function.__dict__.update(state["attributes"])


def _empty_cell() -> CellType:
    return CellType()


def _fill_cell(cell: CellType, contents: Any) -> None:
    cell.cell_contents = contents
