"""Values of pixels, float32, by factors of their channels: computing and writing vectors of them."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import Vector, types
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.simd import store, store_past_cache

LANES = 16
"""Pixels whose values are computed at a time; no row is narrower."""
_LINE = 4 * LANES
"""Bytes of the values of ``LANES`` pixels: a line of a cache."""
BEYOND_CACHE = 1 << 21
"""Bytes of an output that does not stay in a core's cache, so that nothing is gained by writing it there first."""


@inner
def spread_factors(factors: np.ndarray, lanes: int) -> np.ndarray:
    """Return the factors of the values of ``lanes`` pixels of three channels, in their order: three rows, of a, b and
    c.
    """
    row = 3 * lanes
    spread = np.empty(3 * row, np.float32)
    for k in range(3 * row):
        spread[k] = factors[k % 3, k // row]
    return spread


@kernel
def is_beyond_cache(target: np.ndarray) -> bool:
    """Return whether a float32 output is so large that whole cache lines of it are written past the cache."""
    return 4 * target.size >= BEYOND_CACHE


@inner
def is_written_past_cache(target: np.ndarray, width: int, stride: int) -> bool:
    """Return whether rows go to memory past the cache: they are whole lines of it, of a large output.

    Args:
        target: the output, float32.
        width: each row's width.
        stride: values from one channel's to the next one's.
    """
    is_aligned = np.int64(target.ctypes.data) % _LINE == 0 and width % LANES == 0 and stride % LANES == 0
    return is_aligned and is_beyond_cache(target)


@njit(inline="always", **OPTIONS)
def store_values(target: np.ndarray | types.CPointer, place: int, values: Vector, past_cache: bool) -> None:
    """Set ``target[place : place + LANES] = values``, with or without the cache: see :func:`is_written_past_cache`."""
    if past_cache:
        store_past_cache(target, place, values)
    else:
        store(target, place, values)
