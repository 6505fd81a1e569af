"""Perspective warping on the CPU."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.kernels.borders import BORDERS
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import OPTIONS, kernel
from penstock.kernels.cpu.warp import between

_CONSTANT, _REPLICATE, _REFLECT, _REFLECT_101, _WRAP = range(len(BORDERS))
# Subpixel positions that the coarse mode distinguishes.
_STEPS = 32


@kernel
def _inside(index: int, size: int, border: int) -> int:
    """The position in ``[0, size)`` of the value at ``index``; -1 for the constant beyond the border."""
    if 0 <= index < size:
        return index
    if border == _CONSTANT:
        return -1
    if border == _REPLICATE or (border == _REFLECT_101 and size == 1):
        return 0 if index < 0 else size - 1
    if border == _WRAP:
        return index % size
    # Mirroring has a period of twice the size, minus the two edges if they are not repeated.
    period = 2 * size if border == _REFLECT else 2 * size - 2
    index = index % period
    return index if index < size else period - index - (1 if border == _REFLECT else 0)


@njit(inline="always", **OPTIONS)
def _cubic_weights(f: float, weights: np.ndarray) -> None:
    """Keys' cubic convolution, a = -0.75, at the fraction ``f``."""
    a = -0.75
    for i in range(4):
        d = abs(f + 1 - i)
        if d <= 1:
            weights[i] = ((a + 2) * d - (a + 3)) * d * d + 1
        else:
            weights[i] = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


@njit(inline="always", **OPTIONS)
def _position(m: np.ndarray, x: float, y: float) -> tuple[float, float]:
    """Input coordinates of the output pixel; far outside where the homography is undefined."""
    w = m[2, 0] * x + m[2, 1] * y + m[2, 2]
    far = m.dtype.type(1e9)
    if w == 0:
        return -far, -far
    sx, sy = (m[0, 0] * x + m[0, 1] * y + m[0, 2]) / w, (m[1, 0] * x + m[1, 1] * y + m[1, 2]) / w
    return min(max(sx, -far), far), min(max(sy, -far), far)


@njit(inline="always", **OPTIONS)
def _weights(taps: int, sx: float, sy: float, wx: np.ndarray, wy: np.ndarray) -> tuple[int, int]:
    """Fills the weights of the taps around a position; returns the position of the first tap."""
    if taps == 1:
        wx[0] = wy[0] = 1
        return np.int64(np.rint(sx)), np.int64(np.rint(sy))
    left, upper = np.floor(sx), np.floor(sy)
    fx, fy = np.float32(sx - left), np.float32(sy - upper)
    x, y = np.int64(left), np.int64(upper)
    if taps == 2:
        wx[0], wx[1], wy[0], wy[1] = 1 - fx, fx, 1 - fy, fy
        return x, y
    _cubic_weights(fx, wx)
    _cubic_weights(fy, wy)
    return x - 1, y - 1


@kernel
def _warp(
    source: np.ndarray,
    m: np.ndarray,
    taps: int,
    coarse: bool,
    border: int,
    fill: np.ndarray,
    target: np.ndarray,
    like: np.generic,
) -> None:
    height, width, channels = source.shape
    wx, wy = np.empty(4, np.float32), np.empty(4, np.float32)
    # Flat, with unsigned positions: for signed ones, numba would handle negative indices.
    pixels, count, stride = source.reshape(-1), np.uint64(taps), np.uint64(channels)
    row = np.uint64(channels * width)
    out, place = target.reshape(-1), np.uint64(0)
    for y in range(target.shape[0]):
        for x in range(target.shape[1]):
            sx, sy = _position(m, m.dtype.type(x), m.dtype.type(y))
            if coarse:
                sx, sy = np.rint(sx * _STEPS) / _STEPS, np.rint(sy * _STEPS) / _STEPS
            x0, y0 = _weights(taps, sx, sy, wx, wy)
            inside = x0 >= 0 and y0 >= 0 and x0 + taps <= width and y0 + taps <= height
            first = np.uint64(y0) * row + np.uint64(x0) * stride
            if inside and taps == 2:
                fx, fy = wx[1], wy[1]
                for _ in range(stride):
                    a, b = np.float32(pixels[first]), np.float32(pixels[first + stride])
                    d, e = np.float32(pixels[first + row]), np.float32(pixels[first + row + stride])
                    out[place] = between(a, b, d, e, fx, fy, like)
                    first += np.uint64(1)
                    place += np.uint64(1)
                continue
            for c in range(channels):
                total = np.float32(0)
                if inside:
                    first = np.uint64(y0) * row + np.uint64(x0) * stride + np.uint64(c)
                    for j in range(count):
                        line = np.float32(0)
                        for i in range(count):
                            line += wx[i] * np.float32(pixels[first + i * stride])
                        total += wy[j] * line
                        first += row
                else:
                    for j in range(taps):
                        sy0 = _inside(y0 + j, height, border)
                        for i in range(taps):
                            sx0 = _inside(x0 + i, width, border)
                            value = fill[c] if sx0 < 0 or sy0 < 0 else np.float32(source[sy0, sx0, c])
                            total += wx[i] * wy[j] * value
                out[place] = converted(total, like)
                place += np.uint64(1)


def warp_perspective(
    source: np.ndarray, matrix: np.ndarray, taps: int, coarse: bool, border: str, fill: np.ndarray, target: np.ndarray
) -> None:
    """Warps an image (H, W, C).

    Args:
        source: contiguous.
        matrix: 3x3, maps the centres of output pixels to input coordinates, relative to the first centre.
        taps: along each axis: 1 (the nearest pixel), 2 (linear) or 4 (cubic).
        coarse: round subpixel positions to multiples of 1/32.
        border: one of ``BORDERS``.
        fill: for each channel, beyond a constant border.
        target: its dtype decides how results are rounded.
    """
    _warp(
        source,
        # The precision decides which pixel is nearest in a tie; this is the reference's.
        np.ascontiguousarray(matrix, np.float64 if coarse else np.float32),
        taps,
        coarse,
        BORDERS.index(border),
        np.ascontiguousarray(fill, np.float32),
        target,
        target.dtype.type(0),
    )
