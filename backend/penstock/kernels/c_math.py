"""The C library's functions in single precision, which DALI calls; NumPy's functions round differently.

As the library is called once for each element, use these functions for tables, not for data.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np


@cache
def _function(name: str) -> Callable[[float], float]:
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    call: Callable[[float], float] = function
    return call


def _applied(name: str, values: np.ndarray | np.float32) -> np.ndarray:
    flat = np.asarray(values, np.float32).reshape(-1).tolist()
    return np.fromiter(map(_function(name), flat), np.float32, len(flat)).reshape(np.shape(values))


def exp(values: np.ndarray | np.float32) -> np.ndarray:
    """Return ``expf`` of each value, float32."""
    return _applied("expf", values)


def log(values: np.ndarray | np.float32) -> np.ndarray:
    """Return ``logf`` of each value, float32."""
    return _applied("logf", values)


def sin(values: np.ndarray | np.float32) -> np.ndarray:
    """Return ``sinf`` of each value, float32."""
    return _applied("sinf", values)
