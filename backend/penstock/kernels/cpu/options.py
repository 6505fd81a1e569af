"""How kernels are compiled: they release the GIL if they take long, are cached on disk, and divide by zero as in C, without an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict, TypeVar

from numba import njit
from numba.core.dispatcher import Dispatcher

F = TypeVar("F", bound=Callable[..., Any])


class _Options(TypedDict):
    nogil: bool
    cache: bool
    error_model: Literal["numpy"]


OPTIONS: _Options = {"nogil": True, "cache": True, "error_model": "numpy"}
_KERNEL: dict[str, Any] = {**OPTIONS, "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_KERNEL, "no_cpython_wrapper": True}


def kernel(function: F) -> Dispatcher[F]:
    """Compiles a kernel, which Python and other kernels may call."""
    return njit(**_KERNEL)(function)


def brief(function: F) -> Dispatcher[F]:
    """Compiles a kernel that takes some tens of microseconds for a usual batch, and keeps the GIL, which other threads could keep for long."""
    return njit(**{**_KERNEL, "nogil": False})(function)


def inner(function: F) -> Dispatcher[F]:
    """Compiles a function that only kernels may call; a call from Python ends the process.

    Without an entry for Python it compiles faster.
    """
    return njit(**_INNER)(function)
