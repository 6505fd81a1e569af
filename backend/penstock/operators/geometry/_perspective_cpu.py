"""Perspective warping on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.borders import BORDERS
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import OPTIONS, kernel, njit
from penstock.kernels.cpu.simd import fused, load, rounded, store

_CONSTANT, _REPLICATE, _REFLECT, _REFLECT_101, _WRAP = range(len(BORDERS))
# The number of subpixel positions that the coarse mode distinguishes.
_STEPS = 32
# Number of pixels of a row that OpenCV computes at once.
_BLOCK = 16


@kernel
def _inside(index: int, size: int, border: int) -> int:
    """Return the position in ``[0, size)`` from which to read the value at ``index``; -1: it is the constant beyond the border."""
    if 0 <= index < size:
        return index
    if border == _CONSTANT:
        return -1
    if border == _REPLICATE or (border == _REFLECT_101 and size == 1):
        return 0 if index < 0 else size - 1
    if border == _WRAP:
        return index % size
    # Mirroring repeats after twice the size, minus 2 if the edges are not repeated.
    period = 2 * size if border == _REFLECT else 2 * size - 2
    index = index % period
    return index if index < size else period - index - (1 if border == _REFLECT else 0)


@njit(inline="always", **OPTIONS)
def _between(
    a: np.float32, b: np.float32, d: np.float32, e: np.float32, fx: np.float32, fy: np.float32, like: np.generic
) -> np.generic:
    """Interpolate between four neighbours: ``a`` and ``b`` above, ``d`` and ``e`` below."""
    top = a + (b - a) * fx
    low = d + (e - d) * fx
    return converted(top + (low - top) * fy, like)


@njit(inline="always", **OPTIONS)
def _cubic_weights(f: float, weights: np.ndarray) -> None:
    """Write the weights of Keys' cubic convolution, a = -0.75, at the fraction ``f``."""
    a = -0.75
    for i in range(4):
        d = abs(f + 1 - i)
        if d <= 1:
            weights[i] = ((a + 2) * d - (a + 3)) * d * d + 1
        else:
            weights[i] = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


@njit(inline="always", **OPTIONS)
def _input_position(sx: float, sy: float, w: float, i: int, xs: np.ndarray, ys: np.ndarray) -> None:
    """Write the input coordinates of output pixel ``i``, computed from homogeneous coordinates; if ``w`` is 0, far outside."""
    # Clamp by conditional expressions: `min` and `max` treat NaN in a way that prevents vectorization.
    far, zero = xs.dtype.type(1e9), xs.dtype.type(0)
    sx, sy = sx / w, sy / w
    sx = sx if sx < far else far
    sy = sy if sy < far else far
    sx = sx if sx > -far else -far
    sy = sy if sy > -far else -far
    xs[i] = sx if w != zero else -far
    ys[i] = sy if w != zero else -far


@njit(inline="always", **OPTIONS)
def _positions(m: np.ndarray, y: int, coarse: bool, xs: np.ndarray, ys: np.ndarray) -> None:
    """Write the input coordinates of the output pixels of row ``y``; far outside if the homography maps a pixel to infinity."""
    if coarse:
        for i in range(xs.size):
            w = m[2, 0] * i + m[2, 1] * y + m[2, 2]
            _input_position(m[0, 0] * i + m[0, 1] * y + m[0, 2], m[1, 0] * i + m[1, 1] * y + m[1, 2], w, i, xs, ys)
        for i in range(xs.size):
            xs[i], ys[i] = np.rint(xs[i] * _STEPS) / _STEPS, np.rint(ys[i] * _STEPS) / _STEPS
        return
    # Rounding decides which of two equally near pixels is chosen, so round where OpenCV does: in whole blocks of a row, it adds the
    # constant term before the fused multiply-add; for the last pixels, after it.
    row = np.float32(y)
    m00, m10, m20 = np.float32(m[0, 0]), np.float32(m[1, 0]), np.float32(m[2, 0])
    m02, m12, m22 = np.float32(m[0, 2]), np.float32(m[1, 2]), np.float32(m[2, 2])
    x0, y0, w0 = np.float32(m[0, 1]) * row, np.float32(m[1, 1]) * row, np.float32(m[2, 1]) * row
    whole = xs.size // _BLOCK * _BLOCK
    for i in range(whole):
        column = np.float32(np.int32(i))
        sx, sy, w = fused(m00, column, x0 + m02), fused(m10, column, y0 + m12), fused(m20, column, w0 + m22)
        _input_position(sx, sy, w, i, xs, ys)
    for i in range(whole, xs.size):
        column = np.float32(np.int32(i))
        sx, sy, w = fused(m00, column, x0) + m02, fused(m10, column, y0) + m12, fused(m20, column, w0) + m22
        _input_position(sx, sy, w, i, xs, ys)


@njit(inline="always", **OPTIONS)
def _places(start: int, taps: int, size: int, border: int, places: np.ndarray) -> None:
    """Write the positions of a pixel's taps along an axis; -1: the tap is the constant beyond the border."""
    for i in range(taps):
        places[i] = _inside(start + i, size, border)


@njit(inline="always", **OPTIONS)
def _beyond(
    source: np.ndarray,
    xs: np.ndarray,
    ys: np.ndarray,
    c: int,
    taps: int,
    wx: np.ndarray,
    wy: np.ndarray,
    fill: np.float32,
) -> np.float32:
    """Return the weighted sum of one channel's taps, some of which are beyond the border."""
    total = np.float32(0)
    for j in range(taps):
        for i in range(taps):
            value = fill if xs[i] < 0 or ys[j] < 0 else np.float32(source[np.uint64(ys[j]), np.uint64(xs[i]), c])
            total += wx[i] * wy[j] * value
    return total


@kernel
def _nearest(
    source: np.ndarray, m: np.ndarray, coarse: bool, border: int, fill: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    height, width, channels = source.shape
    xs, ys = np.empty(target.shape[1], m.dtype), np.empty(target.shape[1], m.dtype)
    for y in range(target.shape[0]):
        _positions(m, y, coarse, xs, ys)
        for x in range(target.shape[1]):
            sx = _inside(np.int64(np.rint(xs[x])), width, border)
            sy = _inside(np.int64(np.rint(ys[x])), height, border)
            for c in range(channels):
                value = fill[c] if sx < 0 or sy < 0 else np.float32(source[sy, sx, c])
                target[y, x, c] = converted(value, like)


@kernel
def _linear(
    source: np.ndarray, m: np.ndarray, coarse: bool, border: int, fill: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    height, width, channels = source.shape
    wx, wy = np.empty(2, np.float32), np.empty(2, np.float32)
    columns, rows = np.empty(2, np.int64), np.empty(2, np.int64)
    xs, ys = np.empty(target.shape[1], m.dtype), np.empty(target.shape[1], m.dtype)
    lefts, uppers = np.empty(xs.size, np.int32), np.empty(xs.size, np.int32)
    # Use flat arrays and unsigned indices: for signed indices, numba adds code that handles negative ones.
    pixels, out = source.reshape(-1), target.reshape(-1)
    stride, row = np.uint64(channels), np.uint64(channels * width)
    place, spill = np.uint64(0), row + stride + np.uint64(4)
    # Only a fill value of 0 can be written as it is: a weighted sum of any other value may be rounded to another one.
    is_plain, blank = not fill.any(), converted(np.float32(0), like)
    for y in range(target.shape[0]):
        _positions(m, y, coarse, xs, ys)
        for i in range(xs.size):
            left, upper = np.floor(xs[i]), np.floor(ys[i])
            lefts[i], uppers[i] = np.int32(left), np.int32(upper)
            xs[i] -= left
            ys[i] -= upper
        for x in range(target.shape[1]):
            fx, fy = np.float32(xs[x]), np.float32(ys[x])
            x0, y0 = np.int64(lefts[x]), np.int64(uppers[x])
            if x0 >= 0 and y0 >= 0 and x0 + 1 < width and y0 + 1 < height:
                first = np.uint64(y0) * row + np.uint64(x0) * stride
                if channels > 1 and first + spill <= pixels.size and place + np.uint64(4) <= out.size:
                    upper_left, lower_left = load(pixels, first, 4), load(pixels, first + row, 4)
                    top = upper_left + (load(pixels, first + stride, 4) - upper_left) * fx
                    low = lower_left + (load(pixels, first + row + stride, 4) - lower_left) * fx
                    # Four lanes are written even if there are fewer channels; the next pixel then overwrites the rest.
                    store(out, place, rounded(top + (low - top) * fy, like))
                    place += stride
                    continue
                for _ in range(stride):
                    a, b = np.float32(pixels[first]), np.float32(pixels[first + stride])
                    d, e = np.float32(pixels[first + row]), np.float32(pixels[first + row + stride])
                    out[place] = _between(a, b, d, e, fx, fy, like)
                    first += np.uint64(1)
                    place += np.uint64(1)
                continue
            if border == _CONSTANT and is_plain and (x0 < -1 or y0 < -1 or x0 >= width or y0 >= height):
                for _ in range(stride):
                    out[place] = blank
                    place += np.uint64(1)
                continue
            wx[0], wx[1], wy[0], wy[1] = 1 - fx, fx, 1 - fy, fy
            _places(x0, 2, width, border, columns)
            _places(y0, 2, height, border, rows)
            for c in range(channels):
                out[place] = converted(_beyond(source, columns, rows, c, 2, wx, wy, fill[c]), like)
                place += np.uint64(1)


@kernel
def _cubic(
    source: np.ndarray, m: np.ndarray, coarse: bool, border: int, fill: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    height, width, channels = source.shape
    wx, wy = np.empty(4, np.float32), np.empty(4, np.float32)
    columns, rows = np.empty(4, np.int64), np.empty(4, np.int64)
    xs, ys = np.empty(target.shape[1], m.dtype), np.empty(target.shape[1], m.dtype)
    # Use flat arrays and unsigned indices, as above.
    pixels, out = source.reshape(-1), target.reshape(-1)
    stride, row, four = np.uint64(channels), np.uint64(channels * width), np.uint64(4)
    place = np.uint64(0)
    for y in range(target.shape[0]):
        _positions(m, y, coarse, xs, ys)
        for x in range(target.shape[1]):
            left, upper = np.floor(xs[x]), np.floor(ys[x])
            _cubic_weights(np.float32(xs[x] - left), wx)
            _cubic_weights(np.float32(ys[x] - upper), wy)
            x0, y0 = np.int64(left) - 1, np.int64(upper) - 1
            inside = x0 >= 0 and y0 >= 0 and x0 + 4 <= width and y0 + 4 <= height
            if not inside:
                _places(x0, 4, width, border, columns)
                _places(y0, 4, height, border, rows)
            for c in range(channels):
                total = np.float32(0)
                if inside:
                    first = np.uint64(y0) * row + np.uint64(x0) * stride + np.uint64(c)
                    for j in range(four):
                        line = np.float32(0)
                        for i in range(four):
                            line += wx[i] * np.float32(pixels[first + i * stride])
                        total += wy[j] * line
                        first += row
                else:
                    total = _beyond(source, columns, rows, c, 4, wx, wy, fill[c])
                out[place] = converted(total, like)
                place += np.uint64(1)


_KERNELS = {1: _nearest, 2: _linear, 4: _cubic}


def warp_perspective(
    source: np.ndarray, matrix: np.ndarray, taps: int, coarse: bool, border: str, fill: np.ndarray, target: np.ndarray
) -> None:
    """Warp an image (H, W, C).

    Args:
        source: the image to warp, contiguous.
        matrix: a 3x3 matrix that maps the centres of output pixels to input coordinates relative to the first pixel's centre.
        taps: number of taps along each axis: 1 (the nearest pixel), 2 (linear) or 4 (cubic).
        coarse: whether to round subpixel positions to multiples of 1/32.
        border: one of ``BORDERS``.
        fill: the value of each channel beyond a constant border.
        target: the output, of shape (h, w, C); its dtype decides how results are rounded.
    """
    _KERNELS[taps](
        source,
        # Use OpenCV's precision, which decides which of two equally near pixels is chosen.
        np.ascontiguousarray(matrix, np.float64 if coarse else np.float32),
        coarse,
        BORDERS.index(border),
        np.ascontiguousarray(fill, np.float32),
        target,
        target.dtype.type(0),
    )
