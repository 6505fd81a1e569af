"""Colour matrices.

Hue and saturation rotate and scale the chroma plane of YIQ (NTSC); YCbCr is ITU-R BT.601 in studio range: Y from 16 to
235, Cb and Cr from 16 to 240.
"""

from __future__ import annotations

import functools

import numpy as np

from penstock.data_types import FLOAT, INT8, INT16, INT32, UINT8, UINT16, UINT32, DALIDataType, numpy_dtype

_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_FROM_YIQ = np.linalg.inv(_YIQ)
LUMA = np.array([0.299, 0.587, 0.114])
# The same weights in units of 2^-15, for conversion of uint8 images to grey.
COARSE_LUMA = (np.int32(9798), np.int32(19235), np.int32(3735))
TO_YCBCR = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]]) / 255
YCBCR_OFFSET = np.array([16.0, 128.0, 128.0])
FROM_YCBCR = np.linalg.inv(TO_YCBCR)


def hue_saturation_value(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The matrices that rotate the hue, in degrees, and scale saturation and value.

    Args:
        hue, saturation, value: of each image, or one for all.

    Returns:
        float64 of shape (images, 3, 3), with one row if it is for all images.
    """
    angles = np.radians(hue)
    turns = np.zeros((len(angles), 3, 3))
    turns[:, 0, 0] = 1
    turns[:, 1, 1] = turns[:, 2, 2] = np.cos(angles)
    turns[:, 1, 2] = np.sin(angles)
    turns[:, 2, 1] = -turns[:, 1, 2]
    scales = np.ones((len(saturation), 1, 3))
    scales[:, 0, 1:] = saturation[:, None]
    return value[:, None, None] * ((_FROM_YIQ @ turns) * scales @ _YIQ)


@functools.cache
def full_range(dtype: DALIDataType) -> float:
    """The largest value of a type; 1 for floating point."""
    kind = numpy_dtype(dtype)
    return 1.0 if kind.kind == "f" else float(np.iinfo(kind).max)


_HALF = {UINT8: 128.0, INT8: 64.0, UINT16: 2.0**15, INT16: 2.0**14, UINT32: 2.0**31, INT32: 2.0**30, FLOAT: 0.5}


def half_range(dtype: DALIDataType) -> float:
    """The middle of a type's non-negative range; 0.5 for floating point."""
    return _HALF.get(dtype, 0.5)
