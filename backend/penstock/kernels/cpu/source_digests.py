"""Digests of everything on which a kernel's compiled code depends: its source code, and all that this refers to."""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Protocol

import numpy as np

from penstock.kernels.cpu.deferred import DeferredFunction, DeferredIntrinsic, DeferredModule, overloads

_PACKAGE = __name__.partition(".")[0]
Function = Callable[..., Any]
"""A Python function."""


class Compilable(Protocol):
    """A function that can be compiled."""

    @property
    def name(self) -> str:
        """The name by which libraries identify the function."""

    @property
    def py_func(self) -> Function:
        """The Python function."""

    @property
    def targetoptions(self) -> dict[str, object]:
        """numba's options."""

    @property
    def digest(self) -> str:
        """The digest of everything on which the function's compiled code depends."""


def digest_of(function: Function, options: object = None) -> str:
    """Return a digest of the code of a function, and of the functions and constants to which it refers, directly or
    indirectly.

    The digest is the same in all processes with the same version of Python, whatever the version of NumPy.

    Args:
        function: the Python function.
        options: the options with which the function is compiled.
    """
    found: dict[str, bytes] = {}
    _visit(function, found)
    digest = hashlib.sha256(repr(options).encode())
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name])
    return digest.hexdigest()[:24]


def _visit(function: Function, found: dict[str, bytes]) -> None:
    """Add to ``found``, by name, the digest of a function and those of all functions to which it refers."""
    name = _name_of(function)
    if name in found:
        return
    own, references = _own(function)
    found[name] = own
    for reference in references:
        _visit(reference, found)


def _name_of(function: Function) -> str:
    code = function.__code__
    # Functions that are made by the same function differ only in the values in their closures.
    closed = b"".join(_constant(cell.cell_contents)[0] for cell in function.__closure__ or ())
    return (
        f"{function.__module__}:{function.__qualname__}:{code.co_firstlineno}:{hashlib.sha256(closed).hexdigest()[:8]}"
    )


@functools.cache
def _own(function: Function) -> tuple[bytes, tuple[Function, ...]]:
    """Return the digest of a function's code and constants, and the functions to which the code refers."""
    digest, references = hashlib.sha256(), list[Function]()
    values = [function.__defaults__, *(cell.cell_contents for cell in function.__closure__ or ())]
    for code in _codes(function.__code__):
        digest.update(repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars)).encode())
        # Strings are left out, because the docstring is one of the constants.
        constants = [constant for constant in code.co_consts if not isinstance(constant, (CodeType, str))]
        values += constants, [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    for value in values:
        content, functions = _constant(value)
        digest.update(content)
        references += functions
    return digest.digest(), tuple(references)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _constant(value: object) -> tuple[bytes, list[Function]]:
    """Return a text that identifies a value to which a function refers, and the functions among or inside that value."""
    if isinstance(value, DeferredIntrinsic):
        return b"intrinsic", [value.function]
    if isinstance(value, DeferredModule):
        return _of_module(vars(value)["_name"]), []
    if isinstance(value, DeferredFunction):
        return repr(value).encode(), []
    wrapped = getattr(value, "py_func", None)
    if wrapped is not None:
        return repr(getattr(value, "targetoptions", None)).encode(), [wrapped]
    if isinstance(value, FunctionType):
        chosen = [overloads[value].choose] if value in overloads else []
        return b"function", [value, *chosen] if _is_ours(value) else []
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape)).encode() + value.tobytes(), []
    if isinstance(value, (list, tuple, frozenset)):
        parts = [_constant(part) for part in (sorted(value, key=repr) if isinstance(value, frozenset) else value)]
        return b"(" + b",".join(content for content, _ in parts) + b")", [f for _, found in parts for f in found]
    if isinstance(value, ModuleType):
        return _of_module(value.__name__), []
    if isinstance(value, enum.Enum):
        return str(value).encode(), []
    if isinstance(value, type):
        members = list(map(str, value)) if issubclass(value, enum.Enum) else getattr(value, "_fields", None)
        name = "bool" if value is np.bool_ else value.__qualname__
        return repr((value.__module__, name, members)).encode(), []
    if isinstance(value, np.generic):
        # How NumPy writes scalars depends on its version.
        return repr((value.dtype.str, value.tobytes())).encode(), []
    if isinstance(value, (bool, int, float, complex, str, bytes, np.dtype)) or value in (None, Ellipsis):
        return repr(value).encode(), []
    return repr(type(value)).encode(), []


def _is_ours(function: FunctionType) -> bool:
    """Return whether a function belongs to this package; other functions change only with the versions of Python and libraries."""
    return function.__module__.partition(".")[0] == _PACKAGE or function.__module__ == "__main__"


@functools.cache
def _of_module(name: str) -> bytes:
    """Return the contents of a module's file if the module belongs to this package; otherwise its name."""
    spec = importlib.util.find_spec(name) if name.startswith(f"{_PACKAGE}.") else None
    return name.encode() if spec is None or spec.origin is None else Path(spec.origin).read_bytes()
