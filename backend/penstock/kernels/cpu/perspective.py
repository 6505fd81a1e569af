"""Images under a homography, on CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.borders import BORDERS
from penstock.kernels.cpu.convert import converted

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
_CONSTANT, _REPLICATE, _REFLECT, _REFLECT_101, _WRAP = range(len(BORDERS))
# Positions between pixels that the coarse mode tells apart.
_STEPS = 32


@njit(**_OPTIONS)
def _inside(index, size, border):  # type: ignore[no-untyped-def]
    """The position in ``[0, size)`` whose value lies at ``index``; -1 for the constant beyond the border."""
    if 0 <= index < size:
        return index
    if border == _CONSTANT:
        return -1
    if border == _REPLICATE or (border == _REFLECT_101 and size == 1):
        return 0 if index < 0 else size - 1
    if border == _WRAP:
        return index % size
    # Mirrored, the values have a period of twice the size, less the two edges where they are not repeated.
    period = 2 * size if border == _REFLECT else 2 * size - 2
    index = index % period
    return index if index < size else period - index - (1 if border == _REFLECT else 0)


@njit(**_OPTIONS)
def _cubic_weights(f, weights):  # type: ignore[no-untyped-def]
    """Keys' cubic convolution, a = -0.75, at the fraction ``f``."""
    a = -0.75
    for i in range(4):
        d = abs(f + 1 - i)
        if d <= 1:
            weights[i] = ((a + 2) * d - (a + 3)) * d * d + 1
        else:
            weights[i] = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


@njit(**_OPTIONS)
def _position(m, x, y):  # type: ignore[no-untyped-def]
    """Input coordinates of the output pixel; far outside where the homography has none."""
    w = m[2, 0] * x + m[2, 1] * y + m[2, 2]
    far = m.dtype.type(1e9)
    if w == 0:
        return -far, -far
    sx, sy = (m[0, 0] * x + m[0, 1] * y + m[0, 2]) / w, (m[1, 0] * x + m[1, 1] * y + m[1, 2]) / w
    return min(max(sx, -far), far), min(max(sy, -far), far)


@njit(**_OPTIONS)
def _warp(source, m, taps, coarse, border, fill, target, like):  # type: ignore[no-untyped-def]
    height, width, channels = source.shape
    wx, wy = np.empty(4, np.float32), np.empty(4, np.float32)
    xs = np.empty(4, np.int64)
    sums = np.empty(channels, np.float32)
    for y in range(target.shape[0]):
        for x in range(target.shape[1]):
            sx, sy = _position(m, m.dtype.type(x), m.dtype.type(y))
            if coarse:
                sx, sy = np.rint(sx * _STEPS) / _STEPS, np.rint(sy * _STEPS) / _STEPS
            if taps == 1:
                x0, y0 = int(np.rint(sx)), int(np.rint(sy))
                wx[0] = wy[0] = 1
            else:
                x0, y0 = math.floor(sx), math.floor(sy)
                fx, fy = np.float32(sx - x0), np.float32(sy - y0)
                if taps == 2:
                    wx[0], wx[1], wy[0], wy[1] = 1 - fx, fx, 1 - fy, fy
                else:
                    _cubic_weights(fx, wx)
                    _cubic_weights(fy, wy)
                    x0, y0 = x0 - 1, y0 - 1
            for i in range(taps):
                xs[i] = _inside(x0 + i, width, border)
            sums[:] = 0
            for j in range(taps):
                row = _inside(y0 + j, height, border)
                for i in range(taps):
                    weight = wx[i] * wy[j]
                    if row < 0 or xs[i] < 0:
                        for c in range(channels):
                            sums[c] += weight * fill[c]
                    else:
                        for c in range(channels):
                            sums[c] += weight * np.float32(source[row, xs[i], c])
            for c in range(channels):
                target[y, x, c] = converted(sums[c], like)


def warp_perspective(
    source: np.ndarray, matrix: np.ndarray, taps: int, coarse: bool, border: str, fill: np.ndarray, target: np.ndarray
) -> None:
    """Warps an image (H, W, C).

    Args:
        source: contiguous.
        matrix: 3x3, maps the centres of output pixels to coordinates in the input, counted from the first centre.
        taps: along each axis: 1 (the nearest pixel), 2 (linear) or 4 (cubic).
        coarse: positions between pixels are rounded to multiples of 1/32.
        border: one of ``BORDERS``.
        fill: of each channel, beyond a constant border.
        target: its dtype tells how results are rounded.
    """
    _warp(
        source,
        # The precision decides which pixel is nearest at ties; this is the reference's.
        np.ascontiguousarray(matrix, np.float64 if coarse else np.float32),
        taps,
        coarse,
        BORDERS.index(border),
        np.ascontiguousarray(fill, np.float32),
        target,
        target.dtype.type(0),
    )
