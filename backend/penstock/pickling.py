"""Sends callbacks to other processes; functions that the other process cannot import are sent as code, with cloudpickle."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import cloudpickle

__all__ = ["dumps", "loads", "pickle_by_value"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "_penstock_pickle_by_value"


def pickle_by_value(fun: _Function) -> _Function:
    """Decorate a function that a parallel external source sends to its workers as code, instead of importing it there.

    For functions in modules that the workers cannot import. Lambdas, local functions, and functions defined in a notebook or a
    script do not need the decorator.
    """
    if not isinstance(fun, FunctionType):
        raise TypeError(f"Only functions can be set to be pickled by value, this is a `{type(fun).__name__}`")
    setattr(fun, _MARK, True)
    return fun


def dumps(callback: object, protocol: int | None = None) -> bytes:
    """Return a callback as bytes, for :func:`loads` in another process with the same Python."""
    stream = io.BytesIO()
    pickler_class()(stream, protocol).dump(callback)
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """Return the callback that :func:`dumps` has serialized. Only for bytes that this program made: they can execute any code."""
    return pickle.loads(data)


@cache
def pickler_class() -> type[cloudpickle.Pickler]:
    """Return the class of picklers that serialize marked functions as code."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        """Serializes marked functions as code, too, wherever they are defined."""

        def reducer_override(self, obj: Any) -> object:
            marked = isinstance(obj, FunctionType) and hasattr(obj, _MARK)
            return super().reducer_override(_twin(obj) if marked else obj)

    return Pickler


def _twin(function: FunctionType) -> FunctionType:
    """Return a copy of the function that is not an attribute of its module, so that cloudpickle sends its code."""
    twin = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    for name in ("__module__", "__qualname__", "__doc__", "__kwdefaults__", "__annotations__"):
        setattr(twin, name, getattr(function, name))
    twin.__dict__.update(function.__dict__)
    return twin
