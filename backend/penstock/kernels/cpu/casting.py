"""Conversion of whole arrays between types, rounded as by :func:`~penstock.kernels.cpu.convert.converted`."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.halves import round_to_halves
from penstock.kernels.cpu.options import kernel, njit
from penstock.kernels.cpu.pixel_values import BEYOND_CACHE
from penstock.kernels.cpu.simd import fence, load, store_past_cache

_LANES = 16
_LINE_BYTES = 4 * _LANES


@njit(nogil=True)
def _cast(source: np.ndarray, target: np.ndarray, like: np.generic) -> None:
    for i in range(source.size):
        target[i] = converted(source[i], like)


@kernel
def _widen_past_cache(source: np.ndarray, target: np.ndarray) -> None:
    """Convert uint8 to float32 for outputs larger than the cache: they are written with stores that bypass the cache.

    Args:
        source: uint8 of shape (n,).
        target: filled; float32 of shape (n,).
    """
    begin, done = np.int64(target.ctypes.data), 0
    while done < target.size and (begin + 4 * done) % _LINE_BYTES:
        target[done] = np.float32(source[done])
        done += 1
    while done + _LANES <= target.size:
        store_past_cache(target, done, load(source, done, _LANES))
        done += _LANES
    fence()
    for i in range(done, target.size):
        target[i] = np.float32(source[i])


def cast(source: np.ndarray, target: np.ndarray) -> None:
    """Convert all elements; both arrays are contiguous and of the same size. float16 is converted via float32."""
    flat = source.reshape(-1)
    if flat.dtype == np.float16:
        flat = flat.astype(np.float32)
    if target.dtype == np.float16:
        with np.errstate(over="ignore"):
            singles = flat.astype(np.float32, copy=False)
        round_to_halves(singles, target.reshape(-1))
        return
    out = target.reshape(-1)
    if flat.dtype == np.uint8 and out.dtype == np.float32 and out.nbytes >= BEYOND_CACHE:
        _widen_past_cache(flat, out)
    else:
        _cast(flat, out, out.dtype.type(0))
