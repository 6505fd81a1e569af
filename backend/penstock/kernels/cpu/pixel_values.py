"""Compute and store vectors of the values of pixels as float32, with factors for each channel."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import Vector, types
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.simd import store, store_past_cache

LANES = 16
"""The number of pixels whose values are computed at a time; rows must be at least as wide."""
_LINE = 4 * LANES
"""The size in bytes of the values of ``LANES`` pixels: a cache line."""
BEYOND_CACHE = 1 << 21
"""The minimum size in bytes of outputs that are written past the cache: they are too large to stay in a core's cache."""


@inner
def spread_factors(factors: np.ndarray, lanes: int) -> np.ndarray:
    """Return factors repeated for ``lanes`` pixels of three channels, in the order of values; the rows are the factors a, b and c."""
    row = 3 * lanes
    spread = np.empty(3 * row, np.float32)
    for k in range(3 * row):
        spread[k] = factors[k % 3, k // row]
    return spread


@kernel
def is_beyond_cache(target: np.ndarray) -> bool:
    """Return whether a float32 output is so large that it should be written past the cache, where it fills whole cache lines."""
    return 4 * target.size >= BEYOND_CACHE


@inner
def is_written_past_cache(target: np.ndarray, width: int, stride: int) -> bool:
    """Return whether rows can and should be written past the cache: they consist of whole cache lines, and the output is large.

    Args:
        target: the output, float32.
        width: the number of values in a row.
        stride: the distance from one channel to the next, in values.
    """
    is_aligned = np.int64(target.ctypes.data) % _LINE == 0 and width % LANES == 0 and stride % LANES == 0
    return is_aligned and is_beyond_cache(target)


@njit(inline="always", **OPTIONS)
def store_values(target: np.ndarray | types.CPointer, place: int, values: Vector, past_cache: bool) -> None:
    """Set ``target[place : place + LANES] = values``, through the cache or past it; see :func:`is_written_past_cache`."""
    if past_cache:
        store_past_cache(target, place, values)
    else:
        store(target, place, values)
