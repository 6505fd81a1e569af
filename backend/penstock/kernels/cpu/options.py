"""Decorators for kernels, which determine how they are compiled: kernels release the GIL unless they are brief, and division by zero
raises no error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypedDict, TypeVar

from penstock.kernels.cpu.callables import Callback, Kernel

F = TypeVar("F", bound=Callable[..., object])


class _Options(TypedDict):
    nogil: bool
    error_model: Literal["numpy"]


OPTIONS: _Options = {"nogil": True, "error_model": "numpy"}
_KERNEL = dict[str, object](OPTIONS, no_cfunc_wrapper=True)
_INNER = {**_KERNEL, "no_cpython_wrapper": True}


def njit(**options: object) -> Callable[[F], Kernel]:
    """Return a decorator for functions that are compiled for the types of their arguments: ahead of time, or at the first call with
    these types.

    Args:
        options: numba's options.
    """
    return lambda function: Kernel(function, options)


def cfunc(arguments: str, result: str, **options: object) -> Callable[[F], Callback]:
    """Return a decorator for functions that C code calls.

    Args:
        arguments: the types of the arguments, written as in :mod:`penstock.kernels.cpu.signatures`.
        result: the type of the result.
        options: numba's options.
    """
    return lambda function: Callback(function, arguments, result, options)


def kernel(function: F) -> Kernel:
    """Decorate a kernel that Python and other kernels may call."""
    return Kernel(function, _KERNEL)


def brief(function: F) -> Kernel:
    """Decorate a kernel that takes some tens of microseconds for a usual batch, and holds the GIL: if it released the GIL, it might have
    to wait long to get it back from other threads.
    """
    return Kernel(function, {**_KERNEL, "nogil": False})


def inner(function: F) -> Kernel:
    """Decorate a function that only kernels may call; a call from Python ends the process.

    Without an entry point for Python, the function compiles faster.
    """
    return Kernel(function, _INNER)
