"""Colour matrices.

Hue and saturation rotate and scale the chroma plane of YIQ (NTSC); YCbCr is ITU-R BT.601 in studio range: Y from 16 to
235, Cb and Cr from 16 to 240.
"""

from __future__ import annotations

import functools

import numpy as np

from penstock.data_types import FLOAT, INT8, INT16, INT32, UINT8, UINT16, UINT32, DALIDataType, numpy_dtype
from penstock.kernels.geometry import inverse_in_single, product

_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], np.float32)
LUMA = np.array([0.299, 0.587, 0.114])
# The same weights in units of 2^-15, for conversion of uint8 images to grey.
COARSE_LUMA = (np.int32(9798), np.int32(19235), np.int32(3735))
TO_YCBCR = np.array(
    [
        [0.25678823529, 0.50412941176, 0.09790588235],
        [-0.14822289945, -0.29099278682, 0.43921568627],
        [0.43921568627, -0.36778831435, -0.07142737192],
    ]
)
YCBCR_OFFSET = np.array([16.0, 128.0, 128.0])
_LUMA_RANGE = 255 / 219
FROM_YCBCR = np.array(
    [
        [_LUMA_RANGE, 0.0, 1.5960267848],
        [_LUMA_RANGE, -0.39176228842, -0.81296764538],
        [_LUMA_RANGE, 2.0172321417, 0.0],
    ]
)


def hue_saturation_value(
    hue: np.ndarray, saturation: np.ndarray, value: np.ndarray, factor: np.ndarray | None = None
) -> np.ndarray:
    """Return the matrices that rotate the hue and scale saturation and value, computed in single precision as in DALI.

    Args:
        hue: the angle by which to rotate each image's hue, in degrees, or one for all images.
        saturation, value: the factors by which to scale each image's saturation and value, or one for all images.
        factor: a factor by which to multiply each matrix, or one for all; by default 1.

    Returns:
        float32 of shape (images, 3, 3), or (1, 3, 3) if every argument has one number for all images.
    """
    degrees = np.asarray(hue, np.float32).astype(np.float64)
    angles = (degrees * np.pi / 180).astype(np.float32).astype(np.float64)
    turns = np.zeros((len(angles), 3, 3), np.float32)
    turns[:, 0, 0] = 1
    turns[:, 1, 1] = turns[:, 2, 2] = np.cos(angles)
    turns[:, 1, 2] = np.sin(angles)
    turns[:, 2, 1] = -turns[:, 1, 2]
    scales = np.ones((len(saturation), 1, 3), np.float32)
    scales[:, 0, 1:] = saturation[:, None]
    from_yiq = _from_yiq()[None]
    if factor is not None:
        from_yiq = np.asarray(factor, np.float32)[:, None, None] * from_yiq
    return product(product(from_yiq, turns) * scales * np.asarray(value, np.float32)[:, None, None], _YIQ[None])


@functools.cache
def _from_yiq() -> np.ndarray:
    inverse = inverse_in_single(_YIQ)
    assert inverse is not None
    return inverse


@functools.cache
def full_range(dtype: DALIDataType) -> float:
    """Return the largest value of a type; 1 for floating point."""
    kind = numpy_dtype(dtype)
    return 1.0 if kind.kind == "f" else float(np.iinfo(kind).max)


_HALF = {UINT8: 128.0, INT8: 64.0, UINT16: 2.0**15, INT16: 2.0**14, UINT32: 2.0**31, INT32: 2.0**30, FLOAT: 0.5}


def half_range(dtype: DALIDataType) -> float:
    """Return the middle between 0 and the largest value of a type; 0.5 for floating point."""
    return _HALF.get(dtype, 0.5)
