"""Rounding to half precision (float16) and to bfloat16, which numba does not support on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def _round(bits: np.ndarray, target: np.ndarray) -> None:
    """Convert the bits of float32 numbers to those of the nearest float16, ties away from zero. Without branches, so that the loop is
    vectorized.
    """
    for i in range(bits.size):
        magnitude = np.int32(bits[i] & 0x7FFFFFFF)
        sign = np.int32((bits[i] >> 16) & 0x8000)
        # Change the exponent's bias, and add half a unit in the last place; a carry into the exponent gives the right result.
        normal = np.int32((magnitude + np.int32(0x1000) - np.int32(0x38000000)) >> 13)
        # Below 2**-14, adjacent float16 numbers are 2**-24 apart.
        exponent = np.int32(magnitude >> 23)
        shift = min(np.int32(126 - exponent), np.int32(25)) if exponent < 125 else np.int32(1)
        fraction = np.int32((magnitude & 0x7FFFFF) | 0x800000)
        subnormal = np.int32((fraction + (np.int32(1) << (shift - 1))) >> shift)
        half = normal if magnitude >= 0x38800000 else subnormal
        half = half if half < 0x7C00 else np.int32(0x7C00)
        half = half if magnitude <= 0x7F800000 else np.int32(0x7E00)
        target[i] = np.uint16(sign | half)


@kernel
def _round_to_bfloat16(bits: np.ndarray, target: np.ndarray) -> None:
    """Convert the bits of float32 numbers to those of the nearest bfloat16, ties to even."""
    for i in range(bits.size):
        single = bits[i]
        # A carry into the exponent gives the right result.
        nearest = np.uint16((single + np.uint32(0x7FFF) + ((single >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))
        # A NaN remains a NaN and keeps its sign.
        nan = np.uint16((single >> np.uint32(16)) | np.uint32(0x40))
        target[i] = nan if (single & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000) else nearest


def round_to_bfloat16(source: np.ndarray, target: np.ndarray) -> None:
    """Convert numbers to float32, and these to bfloat16.

    Args:
        source: an array of any type.
        target: filled with the bits, uint16 of the same shape; contiguous.
    """
    with np.errstate(over="ignore"):
        singles = np.ascontiguousarray(source, np.float32)
    _round_to_bfloat16(singles.reshape(-1).view(np.uint32), target.reshape(-1))


def rounded_to_halves(source: np.ndarray) -> np.ndarray:
    """Return a float32 array as float16, ties away from zero, as DALI rounds on the CPU (NumPy and GPUs: ties to even)."""
    target = np.empty(source.shape, np.float16)
    _round(np.ascontiguousarray(source).reshape(-1).view(np.uint32), target.reshape(-1).view(np.uint16))
    return target


def round_to_halves(source: np.ndarray, target: np.ndarray) -> None:
    """Same as :func:`rounded_to_halves`, into an existing array."""
    if target.flags.c_contiguous:
        _round(np.ascontiguousarray(source).reshape(-1).view(np.uint32), target.reshape(-1).view(np.uint16))
    else:
        target[...] = rounded_to_halves(source)
