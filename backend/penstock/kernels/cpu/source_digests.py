"""Digests of everything on which a kernel's compiled code depends: its source code, and all that this refers to."""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Protocol

import numpy as np

from penstock.kernels.cpu.deferred import DeferredFunction, DeferredIntrinsic, DeferredModule, overloads

_PACKAGE = __name__.partition(".")[0]
# Most constants are of these types.
_PLAIN_TYPES = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis)})

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
    indirectly. Comments, docstrings and line numbers do not count.

    The digest is the same in all processes with the same version of Python, whatever the version of NumPy.

    Args:
        function: the Python function.
        options: the options with which the function is compiled.
    """
    found: dict[Function, bytes] = {}
    _visit(function, found)
    digest = hashlib.sha256(repr(options).encode())
    # Equal functions that were made by the same function count once, however many of them a process has made.
    for content in sorted(set(found.values())):
        digest.update(content)
    return digest.hexdigest()[:24]


def count_functions(function: Function) -> int:
    """Return the number of functions that are compiled with a function: those to which it refers, directly or indirectly, and itself."""
    found: dict[Function, bytes] = {}
    _visit(function, found)
    return len(found)


def _visit(function: Function, found: dict[Function, bytes]) -> None:
    """Add to ``found`` the digest of a function and those of all functions to which it refers."""
    if function in found:
        return
    own, references = _own(function)
    found[function] = own
    for reference in references:
        _visit(reference, found)


@functools.cache
def _own(function: Function) -> tuple[bytes, tuple[Function, ...]]:
    """Return the digest of a function's code and constants, and the functions to which the code refers."""
    digest, references = hashlib.sha256(_name_and_code(function)), list[Function]()
    values = [function.__defaults__, *(cell.cell_contents for cell in function.__closure__ or ())]
    for code in _codes(function.__code__):
        values += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    for value in values:
        content, functions = _constant(value)
        digest.update(content)
        references += functions
    return digest.digest(), tuple(references)


@functools.cache
def _name_and_code(function: Function) -> bytes:
    """Return a digest that identifies a function among those to which another one refers."""
    name = f"{function.__module__}:{function.__qualname__}".encode()
    return hashlib.sha256(name + b"".join(map(_of_code, _codes(function.__code__)))).digest()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, class or module, and the code nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _of_code(code: CodeType) -> bytes:
    """Return bytes that identify code, except for nested code, line numbers and the docstring."""
    constants, docstring = list(code.co_consts), _docstring_index(code)
    if docstring is not None:
        constants[docstring] = None
    names = repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    return b"".join((code.co_code, names, _constant(constants)[0]))


def _docstring_index(code: CodeType) -> int | None:
    """Return which constant of the code of a function, class or module is its docstring; None if it has none."""
    if not code.co_flags & inspect.CO_OPTIMIZED:
        # A class's first constant is its name.
        first = 0 if code.co_name == "<module>" else 1
        strings = (i for i, constant in enumerate(code.co_consts) if i >= first and isinstance(constant, str))
        return next(strings, None) if "__doc__" in code.co_names else None
    if sys.version_info >= (3, 14):
        return 0 if code.co_flags & inspect.CO_HAS_DOCSTRING else None
    # Code of comprehensions, whose names are in angle brackets, may begin with any constant.
    has_docstring = isinstance(next(iter(code.co_consts), None), str) and not code.co_name.startswith("<")
    return 0 if has_docstring else None


def _constant(value: object) -> tuple[bytes, list[Function]]:
    """Return a text that identifies a value to which a function refers, and the functions among or inside that value."""
    if type(value) in _PLAIN_TYPES:
        return repr(value).encode(), []
    if isinstance(value, DeferredIntrinsic):
        return b"intrinsic" + _name_and_code(value.function), [value.function]
    if isinstance(value, DeferredModule):
        return _of_module(vars(value)["_name"]), []
    if isinstance(value, DeferredFunction):
        return repr(value).encode(), []
    wrapped = getattr(value, "py_func", None)
    if wrapped is not None:
        return repr(getattr(value, "targetoptions", None)).encode() + _name_and_code(wrapped), [wrapped]
    if isinstance(value, FunctionType):
        if not _is_ours(value):
            return b"function", []
        chosen = [overloads[value].choose] if value in overloads else []
        return b"function" + _name_and_code(value), [value, *chosen]
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
    if isinstance(value, (int, float, complex, str, bytes, np.dtype)):
        return repr(value).encode(), []
    return repr(type(value)).encode(), []


def _is_ours(function: FunctionType) -> bool:
    """Return whether a function belongs to this package; other functions change only with the versions of Python and libraries."""
    return function.__module__.partition(".")[0] == _PACKAGE or function.__module__ == "__main__"


@functools.cache
def _of_module(name: str) -> bytes:
    """Return a digest of a module's code if the module belongs to this package; otherwise its name."""
    spec = importlib.util.find_spec(name) if name.startswith(f"{_PACKAGE}.") else None
    if spec is None or spec.origin is None:
        return name.encode()
    # The loader reads the compiled file. Parsing takes longer, and can fail in CPython 3.11 while another thread parses.
    code = spec.loader.get_code(name) if isinstance(spec.loader, InspectLoader) else None
    content = Path(spec.origin).read_bytes() if code is None else b"".join(map(_of_code, _codes(code)))
    return hashlib.sha256(content).digest()
