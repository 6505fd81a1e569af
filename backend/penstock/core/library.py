"""Loads the core's library, which is compiled from its sources if it does not ship with the package."""

from __future__ import annotations

import ctypes
import functools

from penstock.core.compiling import NativeLibrary
from penstock.errors import PenstockError

CORE_VERSION = 1
"""Of the interface in `core.h`, which the library has to have, too."""

CORE = NativeLibrary("libpenstock_core.so", "core", ("-std=c++20",))


class CoreError(PenstockError):
    """The core's library is of another version than this package."""


@functools.cache
def core() -> ctypes.CDLL:
    """The library, whose functions are called without the GIL.

    Raises:
        CompilerError: it has to be compiled, and cannot be.
        CoreError: it is of another version.
    """
    path = CORE.path()
    library = ctypes.CDLL(str(path))
    version = library.penstock_core_version()
    if version != CORE_VERSION:
        raise CoreError(f"{path} has version {version} of the core's interface, and this penstock needs {CORE_VERSION}")
    library.penstock_run_chain.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.penstock_compute_part.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    return library
