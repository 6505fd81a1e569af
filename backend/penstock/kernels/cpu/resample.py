"""Separable resampling on the CPU, fused with normalization; bit for bit as DALI does it.

For each line of the output, the input rows are summed into one row of floats, which stays in the cache; then that row's
columns are summed into the line. Only the rows and columns in the filters are read, so the cost of a window depends on
its size alone. Where columns are to be resampled first, all rows are, before lines are summed. Sums are float32; products are
rounded before they are added, in the order of positions. So a part of the output equals the part of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.halves import round_to_halves
from penstock.kernels.cpu.normalize import converted_fill, normalized
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import at, joined, load, load_pixels, repeated, store, zeros
from penstock.kernels.resize_passes import EdgeTaps

# Lines that are summed together, where many rows of integers are summed: each of these is made floats only once for all lines.
_STRIP, _MANY_TAPS = 8, 3
# Values of a line that are summed together, and the most input rows of them, which are to stay in the cache.
_WIDTH, _MOST_ROWS = 64, 96
# Columns that are summed together.
_BLOCK = 8
# Columns are summed four values at a time, so lines of pixels have this many spare elements at their end.
_SPARE = 4
# Added and subtracted, it rounds what is much smaller to whole numbers, halves to even ones.
_ROUNDER = np.float32(3 << 22)


class _Axis(NamedTuple):
    """The filter of an axis, as kernels take it: see :class:`penstock.kernels.resize_passes.EdgeTaps`."""

    starts: np.ndarray
    weights: np.ndarray
    low: int
    high: int


class _Columns(NamedTuple):
    """The filter of the columns: an :class:`_Axis`, and its weights as blocks of columns are summed with them; see :func:`_blocks`."""

    starts: np.ndarray
    weights: np.ndarray
    low: int
    high: int
    blocks: np.ndarray


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
def _sum_rows(
    flat: np.ndarray,
    column: int,
    stride: int,
    start: int,
    weights: np.ndarray,
    low: int,
    high: int,
    row: np.ndarray,
    begin: int,
    count: int,
) -> None:
    """row[begin + i] = sum over k of weights[k] * flat[y * stride + column + i], for i below count.

    There, y is start + k, or the nearest row from ``low`` on and before ``high``.
    """
    if low <= start and start + weights.size <= high:
        _sum_inner_rows(flat, start * stride + column, stride, weights, row, begin, count)
        return
    first = min(max(start, low), high - 1) * stride + column
    # The taps after which the row changes.
    from_tap, to_tap = low - start, high - 1 - start
    for i in range(count):
        total = np.float32(0)
        place = first + i
        for k in range(weights.size):
            total = total + at(weights, k) * np.float32(at(flat, place))
            if from_tap <= k < to_tap:
                place += stride
        row[begin + i] = total


@inner
def _sum_inner_rows(
    flat: np.ndarray, first: int, stride: int, weights: np.ndarray, row: np.ndarray, begin: int, count: int
) -> None:
    """row[begin + i] = sum over k of weights[k] * flat[first + k * stride + i], for i below count."""
    i = 0
    while i < count:
        place = first + i
        if count < 32:
            short = zeros(1)
            for k in range(weights.size):
                short = short + at(weights, k) * load(flat, place, 1)
                place += stride
            store(row, begin + i, short)
            i += 1
        else:
            # The last block overlaps the previous one, so that all blocks have the same size.
            i = min(i, count - 32)
            place = first + i
            total = zeros(32)
            for k in range(weights.size):
                total = total + at(weights, k) * load(flat, place, 32)
                place += stride
            store(row, begin + i, total)
            i += 32


@inner
def _sum_columns(
    row: np.ndarray,
    first: int,
    channels: int,
    starts: np.ndarray,
    weights: np.ndarray,
    blocks: np.ndarray,
    line: np.ndarray,
) -> None:
    """line[x * channels + c] = sum over k of weights[x, k] * row[(starts[x] - first + k) * channels + c]."""
    taps = weights.shape[1]
    if blocks.size:
        _sum_blocks(row, first, channels, starts, blocks, taps, line)
        return
    flat = weights.ravel()
    for x in range(starts.size):
        pixel = (at(starts, x) - first) * channels
        c = 0
        while c < channels:
            total = zeros(4)
            place = pixel + c
            for k in range(x * taps, (x + 1) * taps):
                total = total + at(flat, k) * load(row, place, 4)
                place += channels
            # Lanes beyond the channels spill into the next pixel, which is written afterwards.
            store(line, x * channels + c, total)
            c += 4


@inner
def _sum_blocks(
    row: np.ndarray, first: int, channels: int, starts: np.ndarray, blocks: np.ndarray, taps: int, line: np.ndarray
) -> None:
    """:func:`_sum_columns` for blocks of columns of at most four channels: four lanes of a vector for each column."""
    x, place = 0, 0
    while x < starts.size:
        # The last block overlaps the previous one.
        x = min(x, starts.size - _BLOCK)
        p0, p1 = (at(starts, x) - first) * channels, (at(starts, x + 1) - first) * channels
        p2, p3 = (at(starts, x + 2) - first) * channels, (at(starts, x + 3) - first) * channels
        p4, p5 = (at(starts, x + 4) - first) * channels, (at(starts, x + 5) - first) * channels
        p6, p7 = (at(starts, x + 6) - first) * channels, (at(starts, x + 7) - first) * channels
        left, right = zeros(16), zeros(16)
        for k in range(0, taps * channels, channels):
            weights = load(blocks, place, 8)
            pixels = joined(load(row, p0 + k, 4), load(row, p1 + k, 4), load(row, p2 + k, 4), load(row, p3 + k, 4))
            left = left + repeated(weights, 0, 4, 4) * pixels
            pixels = joined(load(row, p4 + k, 4), load(row, p5 + k, 4), load(row, p6 + k, 4), load(row, p7 + k, 4))
            right = right + repeated(weights, 4, 4, 4) * pixels
            place += 8
        # Lanes beyond the channels spill into the next pixel, which is written afterwards.
        end = x * channels
        store(line, end, repeated(left, 0, 4, 1))
        store(line, end + channels, repeated(left, 4, 4, 1))
        store(line, end + 2 * channels, repeated(left, 8, 4, 1))
        store(line, end + 3 * channels, repeated(left, 12, 4, 1))
        store(line, end + 4 * channels, repeated(right, 0, 4, 1))
        store(line, end + 5 * channels, repeated(right, 4, 4, 1))
        store(line, end + 6 * channels, repeated(right, 8, 4, 1))
        store(line, end + 7 * channels, repeated(right, 12, 4, 1))
        x += _BLOCK


@kernel
def _blocks(columns: _Axis, channels: int) -> np.ndarray:
    """The weights of blocks of columns, those of a tap side by side; empty if columns are summed one by one."""
    count, taps = columns.weights.shape
    if channels > 4 or count < _BLOCK:
        return np.empty(0, np.float32)
    blocks = np.empty((-(-count // _BLOCK), taps, _BLOCK), np.float32)
    for block in range(len(blocks)):
        x = min(block * _BLOCK, count - _BLOCK)
        for k in range(taps):
            for lane in range(_BLOCK):
                blocks[block, k, lane] = columns.weights[x + lane, k]
    return blocks.ravel()


@kernel
def _resampled_columns(source: np.ndarray, channels: int, columns: _Columns, first_row: int, rows: int) -> np.ndarray:
    """Rows of an image, as flat rows, with their columns resampled: float32, (rows, w * C + spare)."""
    starts, weights, low, high, blocks = columns
    flat, stride, width = source.ravel(), source.shape[1], starts.size
    first, count = _span(columns, width)
    left, right = _inside(first, count, low, high)
    column, values = min(max(first, low), high - 1) * channels, (right - left) * channels
    row, one = np.empty(count * channels + _SPARE, np.float32), np.ones(1, np.float32)
    lines = np.empty((rows, width * channels + _SPARE), np.float32)
    for y in range(rows):
        _sum_inner_rows(flat, (first_row + y) * stride + column, stride, one, row, left * channels, values)
        _pad(row, left * channels, right * channels, count * channels, channels)
        _sum_columns(row, first, channels, starts, weights, blocks, lines[y])
    return lines


@inner
def _span(columns: _Columns, width: int) -> tuple[int, int]:
    """The first column in the filters, which may be beyond the edge, and their number."""
    first, stop = np.int64(0), np.int64(width)
    if columns.starts.size:
        first = stop = np.int64(columns.starts[0])
        for start in columns.starts:
            first, stop = min(first, start), max(stop, start)
        stop += columns.weights.shape[1]
    return first, stop - first


@inner
def _inside(first: int, count: int, low: int, high: int) -> tuple[int, int]:
    """Which of ``count`` columns from the first on are not copies of the edge, of which there is one at least."""
    left = min(max(low - first, 0), count - 1)
    return left, max(min(high - first, count), left + 1)


@inner
def _pad(row: np.ndarray, left: int, right: int, count: int, channels: int) -> None:
    """Copies the outer pixels, from ``left`` on and before ``right``, to what lies beyond."""
    for i in range(left - 1, -1, -1):
        row[i] = row[i + channels]
    for i in range(right, count):
        row[i] = row[i - channels]


@kernel
def _buffers(
    source: np.ndarray, channels: int, rows: _Axis, columns: _Columns, width: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """The first column in the filters, which may be beyond the edge; a strip of rows and a line of floats for sums."""
    first, count = _span(columns, width)
    together = _STRIP if source.itemsize < 4 and rows.weights.shape[1] >= _MANY_TAPS else 1
    strip = np.empty((together, count * channels + _SPARE), np.float32)
    return first, strip, np.empty(width * channels + _SPARE, np.float32)


@inner
def _sum_strip(
    flat: np.ndarray,
    column: int,
    stride: int,
    y: int,
    starts: np.ndarray,
    weights: np.ndarray,
    low: int,
    high: int,
    strip: np.ndarray,
    begin: int,
    count: int,
) -> None:
    """strip[j, begin + i] = the sum of :func:`_sum_rows` of line y + j, for i below count."""
    lines, taps = min(len(strip), starts.size - y), weights.shape[1]
    if lines == 1:
        _sum_rows(flat, column, stride, starts[y], weights[y], low, high, strip[0], begin, count)
        return
    first = last = np.int64(starts[y])
    for line in range(y, y + lines):
        first, last = min(first, starts[line]), max(last, starts[line])
    positions = last + taps - first
    if positions > _MOST_ROWS or count < _WIDTH:
        for line in range(lines):
            _sum_rows(flat, column, stride, starts[y + line], weights[y + line], low, high, strip[line], begin, count)
        return
    floats, target, width = np.empty(positions * _WIDTH, np.float32), strip.ravel(), strip.shape[1]
    factors = weights.ravel()
    i = 0
    while i < count:
        # The last block overlaps the previous one.
        i = min(i, count - _WIDTH)
        for position in range(positions):
            source = min(max(first + position, low), high - 1) * stride + column + i
            store(floats, position * _WIDTH, load(flat, source, 64))
        for line in range(lines):
            place = (at(starts, y + line) - first) * _WIDTH
            total = zeros(64)
            for k in range((y + line) * taps, (y + line + 1) * taps):
                total = total + at(factors, k) * load(floats, place, 64)
                place += _WIDTH
            store(target, line * width + begin + i, total)
        i += _WIDTH


@inner
def _sum_line(
    flat: np.ndarray,
    stride: int,
    channels: int,
    y: int,
    v_starts: np.ndarray,
    v_weights: np.ndarray,
    v_low: int,
    v_high: int,
    h_starts: np.ndarray,
    h_weights: np.ndarray,
    h_low: int,
    h_high: int,
    blocks: np.ndarray,
    first: int,
    strip: np.ndarray,
    line: np.ndarray,
) -> None:
    """The next line of the output, from the strip that it belongs to; without a filter of columns, these are resampled already.

    In a strip, pixels beyond an edge are copies of it.
    """
    if not h_starts.size:
        _sum_rows(flat, 0, stride, v_starts[y], v_weights[y], v_low, v_high, line, 0, line.size - _SPARE)
        return
    if y % len(strip) == 0:
        count = (strip.shape[1] - _SPARE) // channels
        left, right = _inside(first, count, h_low, h_high)
        column, values = min(max(first, h_low), h_high - 1) * channels, (right - left) * channels
        _sum_strip(flat, column, stride, y, v_starts, v_weights, v_low, v_high, strip, left * channels, values)
        for row in strip:
            _pad(row, left * channels, right * channels, count * channels, channels)
    _sum_columns(strip[y % len(strip)], first, channels, h_starts, h_weights, blocks, line)


def _whole(value: np.float32, like: np.generic) -> np.float32:
    """A value as the type of ``like`` would hold it, as float32: saturated and rounded, halves to even numbers. For use in kernels."""
    raise TypeError("for use inside of numba kernels")


# numba compares the signatures of overloads, annotations included, so these functions have none.
@overload(_whole)
def _whole_of(value, like):  # type: ignore[no-untyped-def]
    if isinstance(like, types.Float):
        return lambda value, like: value
    low, high = np.float32(np.iinfo(like.name).min), np.float32(np.iinfo(like.name).max)
    if like.signed:

        def signed(value, like):  # type: ignore[no-untyped-def]
            inside = min(max(value, low), high)
            nearest = (inside + _ROUNDER) - _ROUNDER
            # In DALI, what is rounded up to zero is -1.
            return np.float32(-1) if nearest == np.float32(0) and inside < np.float32(0) else nearest

        return signed

    def unsigned(value, like):  # type: ignore[no-untyped-def]
        inside = min(max(value, low), high)
        return (inside + _ROUNDER) - _ROUNDER

    return unsigned


@inner
def _round(line: np.ndarray, left_over: np.ndarray, like: np.generic) -> None:
    """Saturates and rounds values to the type of ``like``.

    Args:
        line: the values.
        left_over: the places of those whose halves are rounded away from zero.
        like: of the type.
    """
    for i in left_over:
        line[i] = np.float32(converted(line[i], like))
    for i in range(line.size):
        line[i] = _whole(line[i], like)


@kernel
def _resample_plane(
    source: np.ndarray,
    channels: int,
    rows: _Axis,
    columns: _Columns,
    left_over: np.ndarray,
    target: np.ndarray,
    like: np.generic,
) -> None:
    """source (H, W * C), rows maybe longer -> target (h, w * C)."""
    (v_starts, v_weights, v_low, v_high), (h_starts, h_weights, h_low, h_high, blocks) = rows, columns
    first, strip, line = _buffers(source, channels, rows, columns, target.shape[1] // channels)
    flat, stride = source.ravel(), source.shape[1]
    for y in range(v_starts.size):
        _sum_line(
            flat,
            stride,
            channels,
            y,
            v_starts,
            v_weights,
            v_low,
            v_high,
            h_starts,
            h_weights,
            h_low,
            h_high,
            blocks,
            first,
            strip,
            line,
        )
        _round(line, left_over, like)
        out = target[y]
        for i in range(out.size):
            out[i] = type(like)(line[i])


# Means, factors and shift.
_Scaling = tuple[np.ndarray, np.ndarray, np.float32]


@kernel
def _resample_to_planes(
    source: np.ndarray,
    channels: int,
    rows: _Axis,
    columns: _Columns,
    left_over: np.ndarray,
    between: np.generic,
    scaling: _Scaling,
    target: np.ndarray,
    area: tuple[int, int, int],
    like: np.generic,
) -> None:
    """source (H, W * C) -> target (C', h, w), writing the ``area`` of its first C channels."""
    (mean, factor, shift), (top, left, width) = scaling, area
    (v_starts, v_weights, v_low, v_high), (h_starts, h_weights, h_low, h_high, blocks) = rows, columns
    first, strip, line = _buffers(source, channels, rows, columns, width)
    flat, stride = source.ravel(), source.shape[1]
    plane = np.empty(width, np.float32)
    for y in range(v_starts.size):
        _sum_line(
            flat,
            stride,
            channels,
            y,
            v_starts,
            v_weights,
            v_low,
            v_high,
            h_starts,
            h_weights,
            h_low,
            h_high,
            blocks,
            first,
            strip,
            line,
        )
        _round(line, left_over, between)
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
    rows: _Axis,
    columns: _Columns,
    left_over: np.ndarray,
    between: np.generic,
    scaling: _Scaling,
    target: np.ndarray,
    area: tuple[int, int, int],
    like: np.generic,
) -> None:
    """:func:`_resample_to_planes` for three channels, to float32 and of a width of at least ``_LANES``."""
    (mean, factor, shift), (top, left, width) = scaling, area
    (v_starts, v_weights, v_low, v_high), (h_starts, h_weights, h_low, h_high, blocks) = rows, columns
    first, strip, line = _buffers(source, 3, rows, columns, width)
    flat, stride = source.ravel(), source.shape[1]
    mean_r, mean_g, mean_b = mean[0], mean[1], mean[2]
    factor_r, factor_g, factor_b = factor[0], factor[1], factor[2]
    for y in range(v_starts.size):
        _sum_line(
            flat,
            stride,
            3,
            y,
            v_starts,
            v_weights,
            v_low,
            v_high,
            h_starts,
            h_weights,
            h_low,
            h_high,
            blocks,
            first,
            strip,
            line,
        )
        _round(line, left_over, between)
        red, green, blue = target[0, top + y], target[1, top + y], target[2, top + y]
        x = 0
        while x < width:
            x = min(x, width - _LANES)
            r, g, b = load_pixels(line, x * 3, _LANES, 3, False)
            store(red, left + x, (r - mean_r) * factor_r + shift)
            store(green, left + x, (g - mean_g) * factor_g + shift)
            store(blue, left + x, (b - mean_b) * factor_b + shift)
            x += _LANES


@kernel
def _resample_to_pixels(
    source: np.ndarray,
    channels: int,
    rows: _Axis,
    columns: _Columns,
    left_over: np.ndarray,
    between: np.generic,
    scaling: _Scaling,
    target: np.ndarray,
    area: tuple[int, int, int],
    like: np.generic,
) -> None:
    """source (H, W * C) -> target (h, w, C'), writing the ``area`` of its first C channels."""
    (mean, factor, shift), (top, left, width) = scaling, area
    (v_starts, v_weights, v_low, v_high), (h_starts, h_weights, h_low, h_high, blocks) = rows, columns
    first, strip, line = _buffers(source, channels, rows, columns, width)
    flat, stride = source.ravel(), source.shape[1]
    for y in range(v_starts.size):
        _sum_line(
            flat,
            stride,
            channels,
            y,
            v_starts,
            v_weights,
            v_low,
            v_high,
            h_starts,
            h_weights,
            h_low,
            h_high,
            blocks,
            first,
            strip,
            line,
        )
        _round(line, left_over, between)
        out = target[top + y]
        for x in range(width):
            for c in range(channels):
                out[left + x, c] = converted(normalized(at(line, x * channels + c), mean[c], factor[c], shift), like)


@kernel
def _resample_inner_axis(
    source: np.ndarray, axis: _Axis, left_over: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """The middle axis of source (outer, n, inner) -> target (outer, m, inner)."""
    size, count = source.shape[1], source.shape[2]
    flat = source.ravel()
    row = np.empty(count, np.float32)
    for o in range(source.shape[0]):
        for y in range(target.shape[1]):
            begin, start, weights = o * size, axis.starts[y], axis.weights[y]
            _sum_rows(flat, begin * count, count, start, weights, axis.low, axis.high, row, 0, count)
            _round(row, left_over, like)
            out = target[o, y]
            for i in range(count):
                out[i] = type(like)(row[i])


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
    source: np.ndarray,
    vertical: EdgeTaps,
    horizontal: EdgeTaps,
    columns_first: bool,
    left_over: np.ndarray,
    target: np.ndarray,
) -> None:
    """Resamples an image.

    Args:
        source: contiguous, of shape (H, W, C), of uint8, int16, uint16 or float32.
        vertical, horizontal: filters of the axes, or of a window of them.
        columns_first: resample columns before rows.
        left_over: the values of a line whose halves are rounded away from zero, instead of to even numbers.
        target: contiguous, of shape (h, w, C); its dtype decides how results are rounded.
    """
    pixels, rows, columns = _ordered(source, vertical, horizontal, columns_first)
    lines = target.reshape(target.shape[0], -1)
    _resample_plane(pixels, source.shape[2], rows, columns, left_over, lines, target.dtype.type(0))


def resample_normalized(
    source: np.ndarray,
    vertical: EdgeTaps,
    horizontal: EdgeTaps,
    columns_first: bool,
    left_over: np.ndarray,
    between: np.dtype,
    normalization: Normalization,
    target: np.ndarray,
) -> None:
    """Resamples an image, normalizes, converts and transposes it.

    The result is bit for bit that of :func:`resample_image` into an array of dtype ``between``, followed by
    :func:`penstock.kernels.cpu.normalize.crop_mirror_normalize`: a crop is a part of the filters, and mirroring reverses them.

    Args:
        source: contiguous, of shape (H, W, C), of uint8, int16, uint16 or float32.
        vertical, horizontal, columns_first, left_over: as in :func:`resample_image`.
        between: the type of the resized image: the source's, or float32.
        normalization: what follows.
        target: contiguous, (C', h, w) or (h, w, C') as ``normalization`` says, with C' >= C; of float32, float16,
            uint8 or int8.
    """
    if target.dtype == np.float16:
        wide = np.empty(target.shape, np.float32)
        resample_normalized(source, vertical, horizontal, columns_first, left_over, between, normalization, wide)
        round_to_halves(wide, target)
        return
    channels, (top, left) = source.shape[2], normalization.place
    height, width = vertical.starts.size, horizontal.starts.size
    _fill_around(target if normalization.planar else target.transpose(2, 0, 1), channels, height, width, normalization)
    pixels, rows, columns = _ordered(source, vertical, horizontal, columns_first)
    kernel = _resample_to_planes if normalization.planar else _resample_to_pixels
    if normalization.planar and channels == 3 and target.dtype == np.float32 and width >= _LANES:
        kernel = _resample_to_three_planes
    scaling = (normalization.mean, normalization.factor, np.float32(normalization.shift))
    area = (top, left, width)
    like = target.dtype.type(0)
    kernel(pixels, channels, rows, columns, left_over, between.type(0), scaling, target, area, like)


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


def _axis(taps: EdgeTaps) -> _Axis:
    return _Axis(taps.starts, taps.weights, taps.low, taps.high)


def _unchanged(start: int, stop: int) -> _Axis:
    """The filter of an axis of which a part is taken as it is."""
    return _Axis(np.arange(start, stop, dtype=np.int32), np.ones((stop - start, 1), np.float32), start, stop)


def _columns(taps: EdgeTaps, channels: int) -> _Columns:
    axis = _axis(taps)
    return _Columns(*axis, _blocks(axis, channels))


_NO_FILTER = _Columns(np.empty(0, np.int32), np.empty((0, 0), np.float32), 0, 0, np.empty(0, np.float32))


def _ordered(
    source: np.ndarray, vertical: EdgeTaps, horizontal: EdgeTaps, columns_first: bool
) -> tuple[np.ndarray, _Axis, _Columns]:
    """The image as flat rows, and the filters to apply; columns are resampled already if they go first."""
    rows, columns = source.reshape(source.shape[0], -1), _columns(horizontal, source.shape[2])
    if not columns_first:
        return rows, _axis(vertical), columns
    first, stop = vertical.span
    lines = _resampled_columns(rows, source.shape[2], columns, first, stop - first)
    return lines, _axis(vertical.shifted(-first)), _NO_FILTER


def resample_axis(source: np.ndarray, axis: int, taps: EdgeTaps, left_over: np.ndarray, target: np.ndarray) -> None:
    """Resamples one axis of a contiguous array of any rank into one of its dtype or float32.

    Args:
        source: the array.
        axis: the axis.
        taps: its filter.
        left_over: of the values of all inner axes, those whose halves are rounded away from zero, instead of to even numbers.
        target: contiguous, shaped like the source except for the axis.
    """
    like = target.dtype.type(0)
    _resample_inner_axis(_folded_around(source, axis), _axis(taps), left_over, _folded_around(target, axis), like)


def resample_width(
    source: np.ndarray, channels: int, taps: EdgeTaps, left_over: np.ndarray, target: np.ndarray
) -> None:
    """Resamples the columns of a contiguous stack of rows of pixels into one of its dtype or float32.

    Args:
        source: the pixels, of any shape, of ``channels`` values each.
        channels: of the pixels.
        taps: the filter.
        left_over: as in :func:`resample_image`.
        target: contiguous, of as many rows.
    """
    lines, like = target.reshape(-1, len(taps.starts) * channels), target.dtype.type(0)
    count = len(lines)
    pixels = source.reshape(count, -1)
    _resample_plane(pixels, channels, _unchanged(0, count), _columns(taps, channels), left_over, lines, like)


def _folded_around(array: np.ndarray, axis: int) -> np.ndarray:
    outer = int(np.prod(array.shape[:axis], dtype=np.int64))
    return array.reshape(outer, array.shape[axis], -1)


def gather_image(source: np.ndarray, rows: np.ndarray, columns: np.ndarray, target: np.ndarray) -> None:
    """Copies pixels (rows[y], columns[x]) of a contiguous image (H, W, C) to target (h, w, C)."""
    lines = target.reshape(target.shape[0], -1)
    _gather_plane(source.reshape(source.shape[0], -1), source.shape[2], rows, columns, lines, target.dtype.type(0))
