"""Tables for kernels that convert between 8-bit RGB and 8-bit CIE L*a*b* in OpenCV's fixed-point arithmetic.

To L*a*b*: bytes are converted to linear light (11 bits), then to X, Y and Z relative to the D65 white point, then to cube
roots (15 bits).

From L*a*b*: L gives Y and its cube root (14 bits); the root of Y together with a and b gives the roots of X and Z; X, Y
and Z give linear light (12 bits), which is converted to bytes.
"""

from __future__ import annotations

import functools

import numpy as np

_WHITE = np.array([0.950456, 1.0, 1.088754])
_RGB_TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_XYZ_TO_RGB = np.array(
    [[3.240479, -1.53715, -0.498535], [-0.969256, 1.875991, 0.041556], [0.055648, -0.204043, 1.057311]]
)
_COEFFICIENT = 1 << 12
_LINEAR, _ROOT = 255 * 8, 1 << 15
_ROOTS = 256 * 8 * 3 // 2
_BACK, _LINEAR_BACK = 1 << 14, 1 << 12


@functools.cache
def tables_to_lab() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coefficients of X, Y and Z (3x3), the linear light of each byte, and a table of cube roots, all int32."""
    byte = np.arange(256) / 255
    linear = np.where(byte <= 0.04045, byte / 12.92, ((byte + 0.055) / 1.055) ** 2.4)
    x = np.arange(_ROOTS) / _LINEAR
    roots = np.where(x < 216 / 24389, x * (841 / 108) + 16 / 116, np.cbrt(x)).astype(np.float32)
    return (
        _rounded(_COEFFICIENT * _RGB_TO_XYZ / _WHITE[:, None]),
        _rounded(_LINEAR * linear),
        _rounded(_ROOT * roots.astype(np.float64)),
    )


@functools.cache
def tables_from_lab() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coefficients of red, green and blue (3x3), Y and its cube root for each L (256x2), and the byte for each
    value of linear light, all int32."""
    lightness = np.arange(256) * 100 / 255
    dark = lightness <= 8
    root = np.where(dark, lightness * (27 / 24389) * (841 / 108) + 16 / 116, (lightness + 16) / 116)
    y = np.where(dark, lightness * (27 / 24389), root**3)
    linear = np.arange(_LINEAR_BACK) / _LINEAR_BACK
    byte = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return (
        _rounded(_COEFFICIENT * _XYZ_TO_RGB * _WHITE),
        _rounded(_BACK * np.stack([y, root], axis=1)),
        _rounded(255 * byte),
    )


def _rounded(values: np.ndarray) -> np.ndarray:
    rounded: np.ndarray = np.rint(values)
    return rounded.astype(np.int32)
