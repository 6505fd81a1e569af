"""Separable resampling on the CPU, fused with normalization.

For each line of the output, the input rows are summed into one row of floats, which stays in the cache; then that row's
columns are summed into the line. Only the rows and columns in the filters are read, so the cost of a window depends on
its size alone. If the height grows, columns are resampled first, as there are fewer rows. Sums are float32, in an order
that does not depend on the window: a part of the output equals the part of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.halves import round_to_halves
from penstock.kernels.cpu.normalize import converted_fill, normalized
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import add_product, at, load, load_pixels, rounded, store, zeros
from penstock.kernels.filters import Taps

# Columns are summed four values at a time, so lines of pixels have this many spare elements at their end.
_SPARE = 4
_NO_FILTER = Taps(np.empty(0, np.int32), np.empty((0, 0), np.float32))


@dataclass(frozen=True)
class Normalization:
    """Normalization after a resize: ``(x - mean) * factor + shift``, per channel, for the C channels of the input.

    Attributes:
        mean, factor: float32, of shape (C,).
        shift: added last.
        planar: the output is (C', h, w), else (h, w, C').
        fill: for output outside the image and channels beyond C: one value, or float32 of shape (C',).
        place: of the image in the rows and columns of the output.
    """

    mean: np.ndarray
    factor: np.ndarray
    shift: float = 0.0
    planar: bool = True
    fill: np.ndarray | float = 0.0
    place: tuple[int, int] = (0, 0)


@inner
def _sum_rows(flat: np.ndarray, first: int, stride: int, weights: np.ndarray, row: np.ndarray, count: int) -> None:
    """row[i] = sum over k of weights[k] * flat[first + k * stride + i], for i below count."""
    i = 0
    while i < count:
        if count < 32:
            short = zeros(1)
            place = first + i
            for k in range(weights.size):
                short = add_product(short, at(weights, k), load(flat, place, 1))
                place += stride
            store(row, i, short)
            i += 1
        else:
            # The last block overlaps the previous one, so that all blocks have the same size.
            i = min(i, count - 32)
            total = zeros(32)
            place = first + i
            for k in range(weights.size):
                total = add_product(total, at(weights, k), load(flat, place, 32))
                place += stride
            store(row, i, total)
            i += 32


@inner
def _sum_pixels(
    row: np.ndarray, first: int, channels: int, starts: np.ndarray, weights: np.ndarray, line: np.ndarray
) -> None:
    """:func:`_sum_columns` for at most four channels and at least four columns.

    Four columns at a time, whose sums are independent, unlike the additions of a single sum.
    """
    taps = weights.shape[1]
    flat = weights.ravel()
    x = 0
    while x < starts.size:
        # The last block overlaps the previous one, so that all blocks have the same size.
        x = min(x, starts.size - 4)
        place_0, place_1 = (at(starts, x) - first) * channels, (at(starts, x + 1) - first) * channels
        place_2, place_3 = (at(starts, x + 2) - first) * channels, (at(starts, x + 3) - first) * channels
        total_0, total_1, total_2, total_3 = zeros(4), zeros(4), zeros(4), zeros(4)
        for k in range(x * taps, (x + 1) * taps):
            total_0 = add_product(total_0, at(flat, k), load(row, place_0, 4))
            total_1 = add_product(total_1, at(flat, k + taps), load(row, place_1, 4))
            total_2 = add_product(total_2, at(flat, k + 2 * taps), load(row, place_2, 4))
            total_3 = add_product(total_3, at(flat, k + 3 * taps), load(row, place_3, 4))
            place_0 += channels
            place_1 += channels
            place_2 += channels
            place_3 += channels
        # Lanes beyond the channels spill into the next pixel, which is written afterwards.
        store(line, x * channels, total_0)
        store(line, (x + 1) * channels, total_1)
        store(line, (x + 2) * channels, total_2)
        store(line, (x + 3) * channels, total_3)
        x += 4


@inner
def _sum_columns(
    row: np.ndarray, first: int, channels: int, starts: np.ndarray, weights: np.ndarray, line: np.ndarray
) -> None:
    """line[x * channels + c] = sum over k of weights[x, k] * row[(starts[x] - first + k) * channels + c]."""
    if channels <= 4 and starts.size >= 4:
        _sum_pixels(row, first, channels, starts, weights, line)
        return
    taps = weights.shape[1]
    flat = weights.ravel()
    for x in range(starts.size):
        pixel = (at(starts, x) - first) * channels
        c = 0
        while c < channels:
            total = zeros(4)
            place = pixel + c
            for k in range(x * taps, (x + 1) * taps):
                total = add_product(total, at(flat, k), load(row, place, 4))
                place += channels
            # Lanes beyond the channels spill into the next pixel, which is written afterwards.
            store(line, x * channels + c, total)
            c += 4


@kernel
def _resampled_columns(
    source: np.ndarray, channels: int, starts: np.ndarray, weights: np.ndarray, first_row: int, rows: int
) -> np.ndarray:
    """Rows of an image, as flat rows, with their columns resampled: float32, (rows, w * C + spare)."""
    first = starts.min()
    count = (starts.max() + weights.shape[1] - first) * channels
    flat, stride = source.ravel(), source.shape[1]
    row = np.empty(count + _SPARE, np.float32)
    one = np.ones(1, np.float32)
    lines = np.empty((rows, starts.size * channels + _SPARE), np.float32)
    for y in range(rows):
        _sum_rows(flat, (first_row + y) * stride + first * channels, stride, one, row, count)
        _sum_columns(row, first, channels, starts, weights, lines[y])
    return lines


@kernel
def _buffers(
    channels: int, h_starts: np.ndarray, h_weights: np.ndarray, width: int
) -> tuple[int, int, np.ndarray, np.ndarray]:
    """The first column read, the number of values of a row, and a row and a line of floats for sums."""
    first = last = h_starts[0] if h_starts.size else 0
    for start in h_starts:
        first, last = min(first, start), max(last, start)
    count = (last + h_weights.shape[1] - first) * channels if h_starts.size else width * channels
    return first, count, np.empty(count + _SPARE, np.float32), np.empty(width * channels + _SPARE, np.float32)


@inner
def _sum_line(
    flat: np.ndarray,
    stride: int,
    channels: int,
    start: int,
    weights: np.ndarray,
    first: int,
    count: int,
    h_starts: np.ndarray,
    h_weights: np.ndarray,
    row: np.ndarray,
    line: np.ndarray,
) -> None:
    """One line of the output; without horizontal filters, the columns are resampled already."""
    if h_starts.size:
        _sum_rows(flat, start * stride + first * channels, stride, weights, row, count)
        _sum_columns(row, first, channels, h_starts, h_weights, line)
    else:
        _sum_rows(flat, start * stride, stride, weights, line, count)


@kernel
def _resample_plane(
    source: np.ndarray,
    channels: int,
    v_starts: np.ndarray,
    v_weights: np.ndarray,
    h_starts: np.ndarray,
    h_weights: np.ndarray,
    target: np.ndarray,
    like: np.generic,
) -> None:
    """source (H, W * C), rows maybe longer -> target (h, w * C)."""
    first, count, row, line = _buffers(channels, h_starts, h_weights, target.shape[1] // channels)
    flat, stride = source.ravel(), source.shape[1]
    for y in range(v_starts.size):
        _sum_line(flat, stride, channels, v_starts[y], v_weights[y], first, count, h_starts, h_weights, row, line)
        out = target[y]
        for i in range(out.size):
            out[i] = converted(line[i], like)


@kernel
def _round(line: np.ndarray, like: np.generic) -> None:
    """Clamps and rounds values to the type of ``like``. A loop of its own, so that it is vectorized."""
    for i in range(line.size):
        line[i] = np.float32(converted(line[i], like))


# First taps and weights; means, factors and shift.
_Taps = tuple[np.ndarray, np.ndarray]
_Scaling = tuple[np.ndarray, np.ndarray, np.float32]


@kernel
def _resample_to_planes(
    source: np.ndarray,
    channels: int,
    vertical: _Taps,
    horizontal: _Taps,
    between: np.generic,
    scaling: _Scaling,
    target: np.ndarray,
    area: tuple[int, int, int],
    like: np.generic,
) -> None:
    """source (H, W * C) -> target (C', h, w), writing the ``area`` of its first C channels."""
    (v_starts, v_weights), (h_starts, h_weights) = vertical, horizontal
    (mean, factor, shift), (top, left, width) = scaling, area
    first, count, row, line = _buffers(channels, h_starts, h_weights, width)
    flat, stride = source.ravel(), source.shape[1]
    plane = np.empty(width, np.float32)
    for y in range(v_starts.size):
        _sum_line(flat, stride, channels, v_starts[y], v_weights[y], first, count, h_starts, h_weights, row, line)
        _round(line, between)
        for c in range(channels):
            offset, scale = mean[c], factor[c]
            for x in range(width):
                plane[x] = normalized(at(line, x * channels + c), offset, scale, shift)
            out = target[c, top + y]
            for x in range(width):
                out[left + x] = converted(plane[x], like)


# Pixels normalized at a time.
_LANES = 8


@kernel
def _resample_to_three_planes(
    source: np.ndarray,
    channels: int,
    vertical: _Taps,
    horizontal: _Taps,
    between: np.generic,
    scaling: _Scaling,
    target: np.ndarray,
    area: tuple[int, int, int],
    like: np.generic,
) -> None:
    """:func:`_resample_to_planes` for three channels, to float32 and of a width of at least ``_LANES``."""
    (v_starts, v_weights), (h_starts, h_weights) = vertical, horizontal
    (mean, factor, shift), (top, left, width) = scaling, area
    first, count, row, line = _buffers(3, h_starts, h_weights, width)
    flat, stride = source.ravel(), source.shape[1]
    mean_r, mean_g, mean_b = mean[0], mean[1], mean[2]
    factor_r, factor_g, factor_b = factor[0], factor[1], factor[2]
    for y in range(v_starts.size):
        _sum_line(flat, stride, 3, v_starts[y], v_weights[y], first, count, h_starts, h_weights, row, line)
        red, green, blue = target[0, top + y], target[1, top + y], target[2, top + y]
        x = 0
        while x < width:
            x = min(x, width - _LANES)
            r, g, b = load_pixels(line, x * 3, _LANES, 3, False)
            store(red, left + x, (rounded(r, between) - mean_r) * factor_r + shift)
            store(green, left + x, (rounded(g, between) - mean_g) * factor_g + shift)
            store(blue, left + x, (rounded(b, between) - mean_b) * factor_b + shift)
            x += _LANES


@kernel
def _resample_to_pixels(
    source: np.ndarray,
    channels: int,
    vertical: _Taps,
    horizontal: _Taps,
    between: np.generic,
    scaling: _Scaling,
    target: np.ndarray,
    area: tuple[int, int, int],
    like: np.generic,
) -> None:
    """source (H, W * C) -> target (h, w, C'), writing the ``area`` of its first C channels."""
    (v_starts, v_weights), (h_starts, h_weights) = vertical, horizontal
    (mean, factor, shift), (top, left, width) = scaling, area
    first, count, row, line = _buffers(channels, h_starts, h_weights, width)
    flat, stride = source.ravel(), source.shape[1]
    for y in range(v_starts.size):
        _sum_line(flat, stride, channels, v_starts[y], v_weights[y], first, count, h_starts, h_weights, row, line)
        _round(line, between)
        out = target[top + y]
        for x in range(width):
            for c in range(channels):
                out[left + x, c] = converted(normalized(at(line, x * channels + c), mean[c], factor[c], shift), like)


@kernel
def _resample_axis(
    source: np.ndarray, starts: np.ndarray, weights: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """The middle axis of source (outer, n, inner) -> target (outer, m, inner)."""
    size, inner = source.shape[1], source.shape[2]
    flat = source.ravel()
    row = np.empty(inner, np.float32)
    for o in range(source.shape[0]):
        for y in range(target.shape[1]):
            _sum_rows(flat, (o * size + starts[y]) * inner, inner, weights[y], row, inner)
            out = target[o, y]
            for i in range(inner):
                out[i] = converted(row[i], like)


@kernel
def _gather_plane(
    source: np.ndarray, channels: int, rows: np.ndarray, columns: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """Nearest neighbours of source (H, W * C) -> target (h, w * C)."""
    for y in range(rows.size):
        line = source[rows[y]]
        out = target[y]
        if channels == 3:
            for x in range(columns.size):
                base, place = 3 * columns[x], 3 * x
                out[place] = converted(at(line, base), like)
                out[place + 1] = converted(at(line, base + 1), like)
                out[place + 2] = converted(at(line, base + 2), like)
        else:
            for x in range(columns.size):
                base, place = channels * columns[x], channels * x
                for c in range(channels):
                    out[place + c] = converted(at(line, base + c), like)


def resample_image(
    source: np.ndarray, vertical: Taps, horizontal: Taps, target: np.ndarray, columns_first: bool = False
) -> None:
    """Resamples an image.

    Args:
        source: contiguous, of shape (H, W, C), of uint8, int16, uint16 or float32.
        vertical, horizontal: filters of the axes, or of a window of them.
        target: contiguous, of shape (h, w, C); its dtype decides how results are rounded.
        columns_first: resample columns before rows; faster if the height grows.
    """
    rows, vertical, horizontal = _ordered(source, vertical, horizontal, columns_first)
    lines = target.reshape(target.shape[0], -1)
    _resample_plane(rows, source.shape[2], *vertical, *horizontal, lines, target.dtype.type(0))


def resample_normalized(
    source: np.ndarray,
    vertical: Taps,
    horizontal: Taps,
    between: np.dtype,
    normalization: Normalization,
    target: np.ndarray,
    columns_first: bool = False,
) -> None:
    """Resamples an image, normalizes, converts and transposes it.

    The result is bit for bit that of :func:`resample_image` into an array of dtype ``between``, followed by
    :func:`penstock.kernels.cpu.normalize.crop_mirror_normalize`: a crop is a slice of the filters (of ``starts`` and
    ``weights``), and mirroring reverses them.

    Args:
        source: contiguous, of shape (H, W, C), of uint8, int16, uint16 or float32.
        vertical, horizontal: filters of the axes, or of a window of them.
        between: the type of the resized image: the source's, or float32.
        normalization: what follows.
        target: contiguous, (C', h, w) or (h, w, C') as ``normalization`` says, with C' >= C; of float32, float16,
            uint8 or int8.
        columns_first: resample columns before rows; faster if the height grows. Results differ in the last bit, so this
            must be what the unfused resize uses.
    """
    if target.dtype == np.float16:
        wide = np.empty(target.shape, np.float32)
        resample_normalized(source, vertical, horizontal, between, normalization, wide, columns_first)
        round_to_halves(wide, target)
        return
    channels, (top, left) = source.shape[2], normalization.place
    height, width = vertical.starts.size, horizontal.starts.size
    _fill_around(target if normalization.planar else target.transpose(2, 0, 1), channels, height, width, normalization)
    rows, vertical, horizontal = _ordered(source, vertical, horizontal, columns_first)
    kernel = _resample_to_planes if normalization.planar else _resample_to_pixels
    if normalization.planar and channels == 3 and target.dtype == np.float32 and width >= _LANES:
        kernel = _resample_to_three_planes
    scaling = (normalization.mean, normalization.factor, np.float32(normalization.shift))
    area = (top, left, width)
    kernel(rows, channels, vertical, horizontal, between.type(0), scaling, target, area, target.dtype.type(0))


def _fill_around(planes: np.ndarray, channels: int, height: int, width: int, normalization: Normalization) -> None:
    """Fills the parts of ``planes`` (C', h, w) outside an image of ``channels``, ``height`` and ``width``."""
    if planes.shape == (channels, height, width):
        return
    (top, left), fills = normalization.place, np.broadcast_to(np.float32(normalization.fill), len(planes))
    fill = converted_fill(fills, planes.dtype)[:, None, None]
    bottom, right = top + height, left + width
    image, values = planes[:channels], fill[:channels]
    for part, value in (
        (planes[channels:], fill[channels:]),
        (image[:, :top], values),
        (image[:, bottom:], values),
        (image[:, top:bottom, :left], values),
        (image[:, top:bottom, right:], values),
    ):
        if part.size:
            part[...] = value


def _ordered(
    source: np.ndarray, vertical: Taps, horizontal: Taps, columns_first: bool
) -> tuple[np.ndarray, Taps, Taps]:
    """The image as flat rows, and the filters to apply; columns are resampled already if they go first."""
    rows = source.reshape(source.shape[0], -1)
    if not columns_first:
        return rows, vertical, horizontal
    first = int(vertical.starts.min())
    count = int(vertical.starts.max()) + vertical.weights.shape[1] - first
    lines = _resampled_columns(rows, source.shape[2], *horizontal, first, count)
    return lines, Taps(vertical.starts - np.int32(first), vertical.weights), _NO_FILTER


def resample_axis(source: np.ndarray, axis: int, taps: Taps, target: np.ndarray) -> None:
    """Resamples one axis of a contiguous array of any rank into one of its dtype or float32."""
    _resample_axis(_folded_around(source, axis), *taps, _folded_around(target, axis), target.dtype.type(0))


def _folded_around(array: np.ndarray, axis: int) -> np.ndarray:
    outer = int(np.prod(array.shape[:axis], dtype=np.int64))
    return array.reshape(outer, array.shape[axis], -1)


def gather_image(source: np.ndarray, rows: np.ndarray, columns: np.ndarray, target: np.ndarray) -> None:
    """Copies pixels (rows[y], columns[x]) of a contiguous image (H, W, C) to target (h, w, C)."""
    lines = target.reshape(target.shape[0], -1)
    _gather_plane(source.reshape(source.shape[0], -1), source.shape[2], rows, columns, lines, target.dtype.type(0))
