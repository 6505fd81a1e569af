"""Conversion of float32 sounds to the same integers as libsndfile's, which differ between WAV and FLAC."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

# The highest float32 below 2 ** 31.
_HIGHEST = np.float32(2**31 - 128)


@inner
def _is_outside(value: np.float32) -> np.int32:
    """Return 0 for values from -1 to 1, and 1 for all others and NaN."""
    return np.int32(not (abs(value) <= np.float32(1)))


@inner
def _as_int32(value: np.float32) -> np.int32:
    return np.int32(min(np.rint(value * np.float32(2**31)), _HIGHEST))


@kernel
def fill_16_bits(sound: np.ndarray, target: np.ndarray) -> bool:
    """Fill ``target`` with 16-bit integers as in WAV files: the values are rounded to 32-bit integers, whose lower half is dropped.

    Args:
        sound: float32 of shape (n,).
        target: int16 of shape (n,); output.

    Returns:
        Whether all values are from -1 to 1.
    """
    outside = np.int32(0)
    for i in range(sound.size):
        outside |= _is_outside(sound[i])
        target[i] = _as_int32(sound[i]) >> 16
    return outside == 0


@kernel
def fill_24_bits(sound: np.ndarray, target: np.ndarray) -> bool:
    """Like :func:`fill_16_bits`, but fill ``target``, uint8 of shape (3 * n,), with 24-bit integers, little-endian."""
    outside = np.int32(0)
    for i in range(sound.size):
        outside |= _is_outside(sound[i])
        value = _as_int32(sound[i])
        target[3 * i], target[3 * i + 1], target[3 * i + 2] = value >> 8 & 255, value >> 16 & 255, value >> 24 & 255
    return outside == 0


@kernel
def round_to_levels(sound: np.ndarray, bits: int, shift: int, target: np.ndarray) -> bool:
    """Fill ``target`` with integers as in FLAC files: rounded to the nearest, ties to even.

    Args:
        sound: float32 of shape (n,).
        bits: the number of bits of an integer, 16 or 24.
        shift: the number of bits by which integers are shifted to the left in ``target``.
        target: int32 or int16 of shape (n,); output.

    Returns:
        Whether all values are from -1 to 1.
    """
    levels, outside = np.float32(1 << (bits - 1)), np.int32(0)
    for i in range(sound.size):
        outside |= _is_outside(sound[i])
        target[i] = np.int32(min(np.rint(sound[i] * levels), levels - np.float32(1))) << shift
    return outside == 0
