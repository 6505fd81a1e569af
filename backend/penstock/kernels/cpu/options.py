"""How kernels are compiled: they release the GIL if they take long, are cached on disk, and divide by zero as in C, without an error.

The decorators :func:`njit` and :func:`cfunc` are numba's, with our cache (`kernel_cache`) in the place of numba's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict, TypeVar

import numba
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.sigutils import normalize_signature

from penstock.kernels.cpu.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., object])


class _Options(TypedDict):
    nogil: bool
    cache: bool
    error_model: Literal["numpy"]


OPTIONS: _Options = {"nogil": True, "cache": True, "error_model": "numpy"}
_KERNEL = dict[str, Any](OPTIONS, no_cfunc_wrapper=True)
_INNER = {**_KERNEL, "no_cpython_wrapper": True}


def njit(*, cache: bool, **options: Any) -> Callable[[F], Dispatcher[F]]:
    """Compile a function when it is first called with arguments of new types.

    Args:
        cache: keep it on disk.
        options: as numba's.
    """

    def compiled(function: F) -> Dispatcher[F]:
        dispatcher = numba.njit(**options)(function)
        if cache and isinstance(dispatcher, Dispatcher):  # not with NUMBA_DISABLE_JIT
            vars(dispatcher)["_cache"] = KernelCache(function)  # private: numba's `enable_caching` sets it, too
        return dispatcher

    return compiled


class _Callback(CFunc):
    """A callback that is kept on disk."""

    _cache: KernelCache

    def enable_caching(self) -> None:
        self._cache = KernelCache(self.__wrapped__)


def cfunc(signature: object, *, cache: bool, **options: object) -> Callable[[F], CFunc]:
    """Compile a callback for C at once.

    Args:
        signature: its types.
        cache: keep it on disk.
        options: as numba's.
    """

    def compiled(function: F) -> CFunc:
        callback = _Callback(function, normalize_signature(signature), locals={}, options=options)
        if cache:
            callback.enable_caching()
        callback.compile()
        return callback

    return compiled


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
