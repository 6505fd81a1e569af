"""Separable resampling on the CPU, fused with normalization, with exactly DALI's results.

For each line of the output, input rows are summed into one row of floats, which stays in the cache; then the columns of
that row are summed into the line. Only rows and columns that the filters need are read, so the cost of a window depends only on
its size. If columns are to be resampled first, this is done in all rows before rows are summed. Sums are float32; products are
rounded before they are added, in the order of positions. So computing a part of the output gives the same values as computing all of it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from penstock.core.arrays import MAX_RANK
from penstock.kernels.cpu.axis_passes import (
    HIGH,
    LOW,
    NEAREST,
    OFFSET,
    ORIGIN,
    RESTS,
    STEP,
    TAPS,
    fill_nearest,
    fill_passes,
    fill_rests,
    fill_taps,
    read_span,
    window_start,
)
from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.deferred import overload
from penstock.kernels.cpu.memory import copy_bytes, prefetch
from penstock.kernels.cpu.options import brief, inner, kernel
from penstock.kernels.cpu.parts import MAPPED_REGION, PARTS, address_of, elements_at, record_at
from penstock.kernels.cpu.simd import at, joined, load, repeated, store, zeros
from penstock.kernels.resize_passes import EdgeTaps

RESAMPLING = np.dtype(
    [
        ("singles", np.float32, (2, 3)),
        ("wholes", np.int64, (2, 4)),
        ("kinds", np.int64, 2),
        ("filters", np.int64, 2),
        ("filter_entries", np.int64, 2),
        ("starts", np.int64, 2),
        ("weights", np.int64, 2),
        ("columns_first", np.int64),
        ("first", np.int64),
        ("rank", np.int64),
        ("shape", np.int64, MAX_RANK),
        ("rests", np.int64, (RESTS, 2)),
    ],
    align=True,
)
"""How H and W of a sample are resampled.

The first two fields describe the passes of both axes (:func:`penstock.kernels.cpu.axis_passes.fill_passes`); ``filters`` are
the addresses of the filters' tables. ``starts`` and ``weights`` are the addresses of the taps of all output positions, or 0 if
the taps of each part are computed together with the part. H is dimension ``first`` of ``rank`` dimensions; ``shape`` is the output's
shape. ``rests`` are the ranges of values of a line in which halves are rounded away from zero.
"""


class _Axis(NamedTuple):
    """The taps of an axis, for kernels; see :class:`penstock.kernels.resize_passes.EdgeTaps`."""

    starts: np.ndarray
    weights: np.ndarray
    low: int
    high: int


# The number of lines that are summed together, so that each input row is converted to floats only once for all of them; and the minimum
# number of taps for which lines of integers are summed together.
_STRIP, _MANY_TAPS = 8, 3
# The number of values of a line that are summed together, and the maximum number of input rows for them, which must stay in the cache.
_WIDTH, _MOST_ROWS = 64, 96
# The number of columns that are summed together.
_BLOCK = 8
# The number of spare elements at the end of a line: columns are summed four values at a time.
_SPARE = 4
# Adding this number and subtracting it again rounds much smaller numbers to integers, halves to even.
_ROUNDER = np.float32(3 << 22)


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
    """Compute ``row[begin + i] = sum over k of weights[k] * flat[y * stride + column + i]``, for ``i`` below ``count``.

    Here, ``y`` is ``start + k``, clamped to the rows from ``low`` to ``high``, excluding ``high``.
    """
    if low <= start and start + weights.size <= high:
        _sum_inner_rows(flat, start * stride + column, stride, weights, row, begin, count)
        return
    first = min(max(start, low), high - 1) * stride + column
    # Taps before the first row and after the last row read the same row; only these taps move on to the next row.
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
    """Compute ``row[begin + i] = sum over k of weights[k] * flat[first + k * stride + i]``, for ``i`` below ``count``."""
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
    """Compute ``line[x * channels + c] = sum over k of weights[x, k] * row[(starts[x] - first + k) * channels + c]``."""
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
            # Lanes beyond the channels overwrite the next pixel, which is computed afterwards.
            store(line, x * channels + c, total)
            c += 4


@inner
def _sum_blocks(
    row: np.ndarray, first: int, channels: int, starts: np.ndarray, blocks: np.ndarray, taps: int, line: np.ndarray
) -> None:
    """Same as :func:`_sum_columns`, for at most four channels, in blocks of columns; each column takes four lanes of a vector."""
    x, place = 0, 0
    while x < starts.size:
        # The last block overlaps the previous one, so that all blocks have the same size.
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
        # Lanes beyond the channels overwrite the next pixel, which is computed afterwards.
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


@inner
def _blocks(weights: np.ndarray, channels: int, room: np.ndarray) -> np.ndarray:
    """Fill ``room`` with the weights of blocks of columns, tap by tap, and return the part that is filled; it is empty if columns are
    summed one by one.
    """
    count, taps = weights.shape
    if channels > 4 or count < _BLOCK:
        return room[:0]
    place = 0
    for block in range(-(-count // _BLOCK)):
        x = min(block * _BLOCK, count - _BLOCK)
        for k in range(taps):
            for lane in range(_BLOCK):
                room[place] = weights[x + lane, k]
                place += 1
    return room[:place]


@inner
def _span(starts: np.ndarray, taps: int) -> tuple[int, int]:
    """Return the first input position that the taps read, which may lie outside the input, and the number of positions."""
    first, last = int(starts[0]), int(starts[starts.size - 1])
    return min(first, last), max(first, last) - min(first, last) + taps


@inner
def _inside(first: int, count: int, low: int, high: int) -> tuple[int, int]:
    """Return the range of those of ``count`` columns that lie inside the input, relative to ``first``; at least one column."""
    left = min(max(low - first, 0), count - 1)
    return left, max(min(high - first, count), left + 1)


@inner
def _pad(row: np.ndarray, left: int, right: int, count: int, channels: int) -> None:
    """Fill the columns before ``left`` and from ``right`` on with the outermost pixels of the range between them."""
    for i in range(left * channels - 1, -1, -1):
        row[i] = row[i + channels]
    for i in range(right * channels, count * channels):
        row[i] = row[i - channels]


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
    floats: np.ndarray,
    begin: int,
    count: int,
) -> None:
    """Compute the lines of a strip: ``strip[j, begin + i]``, for ``i`` below ``count``, becomes the sum that :func:`_sum_rows` computes for
    line ``y + j``. ``floats`` is scratch memory.
    """
    lines, taps = min(len(strip), starts.size - y), weights.shape[1]
    if lines == 1:
        _sum_rows(flat, column, stride, starts[y], weights[y], low, high, strip[0], begin, count)
        return
    first = last = int(starts[y])
    for line in range(y, y + lines):
        first, last = min(first, int(starts[line])), max(last, int(starts[line]))
    positions = last + taps - first
    if positions > _MOST_ROWS or count < _WIDTH:
        for line in range(lines):
            _sum_rows(flat, column, stride, starts[y + line], weights[y + line], low, high, strip[line], begin, count)
        return
    target, width, factors = strip.reshape(-1), strip.shape[1], weights.reshape(-1)
    i = 0
    while i < count:
        # The last block overlaps the previous one, so that all blocks have the same size.
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
    rows: _Axis,
    columns: _Axis,
    blocks: np.ndarray,
    first: int,
    strip: np.ndarray,
    floats: np.ndarray,
    line: np.ndarray,
) -> None:
    """Compute line ``y`` of the output from its strip; if it is the strip's first line, compute the strip before.

    In a strip, pixels beyond an edge repeat the edge.
    """
    if y % len(strip) == 0:
        count = (strip.shape[1] - _SPARE) // channels
        left, right = _inside(first, count, columns.low, columns.high)
        column, values = min(max(first, columns.low), columns.high - 1) * channels, (right - left) * channels
        _sum_strip(
            flat,
            column,
            stride,
            y,
            rows.starts,
            rows.weights,
            rows.low,
            rows.high,
            strip,
            floats,
            left * channels,
            values,
        )
        for row in strip:
            _pad(row, left, right, count, channels)
    _sum_columns(strip[y % len(strip)], first, channels, columns.starts, columns.weights, blocks, line)


def _whole(value: np.float32, like: np.generic) -> np.float32:
    """Return, as float32, a value saturated to the range of ``like``'s type and rounded half to even. For use in kernels."""
    raise TypeError("this function can only be called in numba kernels")


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
            # In DALI, negative numbers that round to zero become -1.
            return np.float32(-1) if nearest == np.float32(0) and inside < np.float32(0) else nearest

        return signed

    def unsigned(value, like):  # type: ignore[no-untyped-def]
        inside = min(max(value, low), high)
        return (inside + _ROUNDER) - _ROUNDER

    return unsigned


@inner
def _round(line: np.ndarray, rests: np.ndarray, skipped: int, out: np.ndarray, like: np.generic) -> None:
    """Saturate, round and store the values of a line.

    Args:
        line: the values.
        rests: ranges (begin, end) of values of the whole line in which halves are rounded away from zero.
        skipped: the number of values of the whole line before ``line``.
        out: filled with the results.
        like: a value of the results' type.
    """
    for number in range(len(rests)):
        for i in range(max(rests[number, 0] - skipped, 0), min(rests[number, 1] - skipped, out.size)):
            line[i] = np.float32(converted(line[i], like))
    for i in range(out.size):
        out[i] = type(like)(_whole(line[i], like))


class _Scratch(NamedTuple):
    """Scratch memory, float32.

    Attributes:
        blocks: for the weights of blocks of columns.
        strip: for lines whose columns are not summed yet.
        floats: for input rows converted to floats.
        line: for a line of the output.
        lines: for all rows that are read, with resampled columns, if columns are resampled first.
    """

    blocks: np.ndarray
    strip: np.ndarray
    floats: np.ndarray
    line: np.ndarray
    lines: np.ndarray


@inner
def _resample_lines(
    flat: np.ndarray,
    stride: int,
    channels: int,
    rows: _Axis,
    columns: _Axis,
    rests: np.ndarray,
    skipped: int,
    scratch: _Scratch,
    target: int,
    target_stride: int,
    like: np.generic,
) -> None:
    """Resample rows, then columns.

    Args:
        flat: the image's values, from row and column 0 on.
        stride: the distance from one row to the next, in elements.
        channels: the number of channels of a pixel.
        rows, columns: the taps of both axes.
        rests, skipped: as in :func:`_round`.
        scratch: scratch memory.
        target: the address of the first line.
        target_stride: the distance from one line to the next, in bytes.
        like: a value of the output's type.
    """
    first, _ = _span(columns.starts, columns.weights.shape[1])
    blocks = _blocks(columns.weights, channels, scratch.blocks)
    for y in range(rows.starts.size):
        _sum_line(flat, stride, channels, y, rows, columns, blocks, first, scratch.strip, scratch.floats, scratch.line)
        out = elements_at(target + y * target_stride, columns.starts.size * channels, like)
        _round(scratch.line, rests, skipped, out, like)


@inner
def _resample_row(
    flat: np.ndarray,
    begin: int,
    channels: int,
    columns: _Axis,
    first: int,
    count: int,
    blocks: np.ndarray,
    one: np.ndarray,
    row: np.ndarray,
    line: np.ndarray,
) -> None:
    """Resample the columns of a row.

    Args:
        flat: the image's values.
        begin: the offset at which the row begins.
        channels: the number of channels of a pixel.
        columns: the taps, which read ``count`` columns from ``first`` on.
        blocks: the taps' weights, from :func:`_blocks`.
        one: an array that contains only the number 1.
        row: scratch memory.
        line: filled with the results.
    """
    left, right = _inside(first, count, columns.low, columns.high)
    place, values = begin + min(max(first, columns.low), columns.high - 1) * channels, (right - left) * channels
    _sum_inner_rows(flat, place, 0, one, row, left * channels, values)
    _pad(row, left, right, count, channels)
    _sum_columns(row, first, channels, columns.starts, columns.weights, blocks, line)


@inner
def _resample_columns_first(
    flat: np.ndarray,
    stride: int,
    channels: int,
    rows: _Axis,
    columns: _Axis,
    read: tuple[int, int],
    rests: np.ndarray,
    skipped: int,
    scratch: _Scratch,
    target: int,
    target_stride: int,
    like: np.generic,
) -> None:
    """Same as :func:`_resample_lines`, but resample columns first; ``read``: the range of rows that are read."""
    first, count = _span(columns.starts, columns.weights.shape[1])
    blocks = _blocks(columns.weights, channels, scratch.blocks)
    line, one = scratch.line, scratch.floats[:1]
    one[0] = np.float32(1)
    for y in range(read[0], read[1]):
        result = scratch.lines[(y - read[0]) * line.size : (y - read[0] + 1) * line.size]
        _resample_row(flat, y * stride, channels, columns, first, count, blocks, one, scratch.strip[0], result)
    for y in range(rows.starts.size):
        start = np.int64(rows.starts[y]) - read[0]
        low, high = rows.low - read[0], rows.high - read[0]
        _sum_rows(scratch.lines, 0, line.size, start, rows.weights[y], low, high, line, 0, line.size - _SPARE)
        out = elements_at(target + y * target_stride, columns.starts.size * channels, like)
        _round(line, rests, skipped, out, like)


# The number of rows ahead of which pixels are prefetched: the processor does not foresee which rows are read.
_ROWS_AHEAD = 2
_CACHE_LINE = 64


@inner
def _gather_pixels(
    source: int,
    step: int,
    end: int,
    channels: int,
    rows: np.ndarray,
    columns: np.ndarray,
    target: int,
    target_step: int,
    like: np.generic,
    like_out: np.generic,
) -> None:
    """Copy the pixels at (rows[y], columns[x]).

    Args:
        source: the address of the pixel (0, 0).
        step: bytes from a row to the next one.
        end: the number of values of a row up to the last one that may be read.
        channels: values of a pixel.
        rows, columns: the positions to copy.
        target: the address of the first pixel to write.
        target_step: bytes from a line of the output to the next one.
        like, like_out: values of the types of the elements.
    """
    if columns.size == 0:
        return
    size = np.int64(elements_at(source, 0, like).itemsize)
    first, last = min(columns[0], columns[-1]) * channels, (max(columns[0], columns[-1]) + 1) * channels
    for y in range(rows.size):
        line, out = source + rows[y] * step, target + y * target_step
        if y + _ROWS_AHEAD < rows.size:
            ahead = source + rows[y + _ROWS_AHEAD] * step
            for place in range(ahead + first * size, ahead + last * size, _CACHE_LINE):
                prefetch(place)
        if channels == 3 and isinstance(like, np.uint8) and isinstance(like_out, np.uint8):
            _gather_bytes(line, end, columns, out)
        else:
            values = elements_at(line, end, like)
            _gather_line(values, channels, columns, elements_at(out, columns.size * channels, like_out), like_out)


@inner
def _gather_bytes(line: int, end: int, columns: np.ndarray, out: int) -> None:
    """Copy pixels of three bytes from the given columns of a row: four bytes at a time, if they exist, as the next pixel overwrites the
    last one.
    """
    last = columns.size - 1
    for x in range(last):
        base = 3 * np.int64(columns[x])
        if base + 4 <= end:
            copy_bytes(out + 3 * x, line + base, 4)
        else:
            copy_bytes(out + 3 * x, line + base, 3)
    copy_bytes(out + 3 * last, line + 3 * np.int64(columns[last]), 3)


@inner
def _gather_line(line: np.ndarray, channels: int, columns: np.ndarray, out: np.ndarray, like: np.generic) -> None:
    """Copy the pixels of a row at the positions in ``columns``, converted to the type of ``like``."""
    if channels == 3:
        for x in range(columns.size):
            base, place = 3 * np.int64(columns[x]), 3 * x
            out[place] = converted(at(line, base), like)
            out[place + 1] = converted(at(line, base + 1), like)
            out[place + 2] = converted(at(line, base + 2), like)
        return
    for x in range(columns.size):
        base, place = channels * np.int64(columns[x]), channels * x
        for c in range(channels):
            out[place + c] = converted(at(line, base + c), like)


_ALIGNED = 16
"""Pieces of scratch memory are rounded up to a multiple of this many elements."""


@inner
def _piece(elements: int) -> int:
    """Return ``elements`` rounded up to the size of a piece of scratch memory."""
    return -(-elements // _ALIGNED) * _ALIGNED


@inner
def _strip_lines(taps: int, size: int) -> int:
    """Return the number of lines that are summed together; ``size``: the size of an input element in bytes."""
    return _STRIP if size < 4 and taps >= _MANY_TAPS else 1


@inner
def _scratch_elements(
    height: int, width: int, channels: int, taps: tuple[int, int], rows: int, columns: int, columns_first: bool
) -> int:
    """Return the number of elements of scratch memory for an output, or for a part of one.

    Args:
        height, width, channels: the height, width and channels of the output.
        taps: the number of taps of both axes.
        rows: the number of rows that are read.
        columns: the number of columns that are read.
        columns_first: whether columns are resampled first.
    """
    line = width * channels + _SPARE
    elements = _piece(height) + _piece(width) + _piece(height * taps[0]) + _piece(width * taps[1])
    elements += _piece(-(-width // _BLOCK) * _BLOCK * taps[1]) + _piece(_STRIP * (columns * channels + _SPARE))
    elements += _piece(_MOST_ROWS * _WIDTH) + _piece(line)
    return elements + (_piece(rows * line) if columns_first else 0)


@brief
def fill_resamplings(
    size_in: np.ndarray,
    size_out: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    kinds: np.ndarray,
    antialias: bool,
    filters: np.ndarray,
    entries: np.ndarray,
    shapes: np.ndarray,
    first: int,
    lanes: int,
    records: np.ndarray,
) -> tuple[int, bool, bool]:
    """Describe the resampling of images in records.

    Args:
        size_in, size_out, start, end, kinds, antialias, entries: as in :func:`penstock.kernels.cpu.axis_passes.fill_passes`, with a row for
            each image.
        filters: the addresses of the filters' tables.
        shapes: the outputs' shapes, in rows.
        first: the number of dimension H; W is the next one.
        lanes: the number of values that DALI rounds together; 0: results are floats.
        records: filled; an array of type ``RESAMPLING``, which must be zeros. ``starts`` and ``weights`` are left to the caller.

    Returns:
        The number of bytes of scratch memory that the largest image needs, and, for each axis, whether all images have the same taps.
    """
    order, most = np.empty(2, np.int64), 0
    same = np.ones(2, np.bool_)
    for number in range(len(records)):
        work, rank = records[number], shapes.shape[1]
        if not shapes[number].all():
            # If a sample is empty, the compiled core computes nothing of the batch, so nothing has to be described.
            same[:] = False
            continue
        singles, wholes, rests = work.singles, work.wholes, work.rests
        work.first, work.rank = first, rank
        channels = np.int64(1)
        for axis in range(rank):
            work.shape[axis] = shapes[number, axis]
            if axis > first + 1:
                channels *= shapes[number, axis]
        own_kinds = kinds[number]
        fill_passes(
            size_in[number],
            size_out[number],
            start[number],
            end[number],
            own_kinds,
            antialias,
            entries,
            order,
            singles,
            wholes,
        )
        work.columns_first = 1 if order[0] == 1 else 0
        for axis in range(2):
            kind = own_kinds[axis]
            work.kinds[axis], work.filters[axis], work.filter_entries[axis] = kind, filters[kind], entries[kind]
            first_singles, first_wholes = records[0].singles, records[0].wholes
            alike = records[0].kinds[axis] == kind
            alike = alike and size_out[number, axis] == size_out[0, axis]
            for column in range(3):
                alike = alike and first_singles[axis, column] == singles[axis, column]
            for column in range(4):
                alike = alike and first_wholes[axis, column] == wholes[axis, column]
            same[axis] = same[axis] and alike
        height, width = size_out[number, 0], size_out[number, 1]
        fill_rests(order, size_out[number], own_kinds, singles, wholes, channels, lanes, rests)
        if height > 0 and width > 0:
            low, high = read_span(singles[0], wholes[0], own_kinds[0], False, 0, height)
            columns = wholes[1, TAPS]
            if own_kinds[1] == NEAREST:
                left, right = read_span(singles[1], wholes[1], NEAREST, True, 0, width)
                columns = right - left
            else:
                origin, step, offset = singles[1, ORIGIN], singles[1, STEP], wholes[1, OFFSET]
                columns += abs(window_start(width - 1, origin, step, offset) - window_start(0, origin, step, offset))
            taps = wholes[0, TAPS], wholes[1, TAPS]
            columns_first = work.columns_first != 0
            elements = _scratch_elements(height, width, channels, taps, high - low, columns, columns_first)
            most = max(most, elements)
    return 4 * most, same[0], same[1]


@kernel
def _read(record: np.ndarray, region: np.ndarray) -> None:
    """Replace a part of the output, ``region``, by the rows and columns of the input on which that part depends."""
    work, window = record_at(record), record_at(region)
    for axis in range(2):
        place = work.first + axis
        if window.extents[place] == 0:
            continue
        start, stop = read_span(
            work.singles[axis],
            work.wholes[axis],
            work.kinds[axis],
            axis == 1,
            window.anchor[place],
            window.extents[place],
        )
        window.anchor[place], window.extents[place] = start, stop - start


@kernel
def _covered(record: np.ndarray, region: np.ndarray) -> None:
    """Extend ``region``, a part of the output, to all values of its pixels, because these are computed together."""
    work, window = record_at(record), record_at(region)
    for place in range(work.first + 2, work.rank):
        window.anchor[place], window.extents[place] = 0, work.shape[place]


@inner
def _axis_of(work: np.record, axis: int, first: int, count: int, starts: int, weights: int) -> _Axis:
    """Return the taps of ``count`` output positions of an axis from ``first`` on. If taps were not computed ahead, compute these at the
    addresses ``starts`` and ``weights``.
    """
    taps = work.wholes[axis, TAPS]
    known = work.starts[axis] != 0
    if known:
        starts, weights = work.starts[axis] + 4 * first, work.weights[axis] + 4 * first * taps
    positions = elements_at(starts, count, np.int32(0))
    factors = elements_at(weights, count * taps, np.float32(0)).reshape(count, taps)
    if not known:
        _fill_axis(work, axis, first, positions, factors)
    return _Axis(positions, factors, work.wholes[axis, LOW], work.wholes[axis, HIGH])


@inner
def _fill_axis(work: np.record, axis: int, first: int, starts: np.ndarray, weights: np.ndarray) -> None:
    if work.kinds[axis] == NEAREST:
        fill_nearest(work.singles[axis], work.wholes[axis], axis == 1, first, starts)
        weights[:] = np.float32(1)
    else:
        table = elements_at(work.filters[axis], work.filter_entries[axis], np.float32(0))
        fill_taps(work.singles[axis], work.wholes[axis], table, first, starts, weights)


@brief
def fill_common_axis(record: np.ndarray, axis: int, starts: np.ndarray, weights: np.ndarray) -> None:
    """Fill in the taps of all output positions of an axis, as described by the first record."""
    _fill_axis(record[0], axis, 0, starts, weights)


@inner
def _plane_offset(plane: int, first: int, part: np.record) -> int:
    """Return the distance in bytes from the first image of a part to image ``plane``; the first ``first`` dimensions number the images."""
    offset = 0
    for axis in range(first - 1, -1, -1):
        offset += plane % part.extents[axis] * part.strides[axis]
        plane //= part.extents[axis]
    return offset


@kernel
def _resample_part(
    record: np.ndarray,
    source_part: np.ndarray,
    target_part: np.ndarray,
    scratch: int,
    like: np.generic,
    like_out: np.generic,
) -> None:
    """Resample a part of a sample; in input and output, the pixels of a row must be adjacent."""
    work, source, target = record_at(record), record_at(source_part), record_at(target_part)
    first = work.first
    top, left = target.anchor[first], target.anchor[first + 1]
    height, width = target.extents[first], target.extents[first + 1]
    planes, channels = np.int64(1), np.int64(1)
    for axis in range(first):
        planes *= target.extents[axis]
    for axis in range(first + 2, work.rank):
        channels *= target.extents[axis]
    if planes * height * width * channels == 0:
        return
    size = np.int64(elements_at(scratch, 0, like).itemsize)
    v_taps, h_taps = work.wholes[0, TAPS], work.wholes[1, TAPS]
    # Divide the scratch memory into pieces.
    weights = scratch + 4 * (_piece(height) + _piece(width))
    rows = _axis_of(work, 0, top, height, scratch, weights)
    weights += 4 * _piece(height * v_taps)
    columns = _axis_of(work, 1, left, width, scratch + 4 * _piece(height), weights)
    room = weights + 4 * _piece(width * h_taps)
    stride, target_stride = source.strides[first] // size, target.strides[first]
    # The distance from row 0, column 0 to the part's first pixel, in bytes.
    origin = source.anchor[first] * source.strides[first] + source.anchor[first + 1] * channels * size
    if work.kinds[0] == NEAREST and work.kinds[1] == NEAREST:
        end = (source.anchor[first + 1] + source.extents[first + 1]) * channels
        for plane in range(planes):
            begin = source.data + _plane_offset(plane, first, source) - origin
            out = target.data + _plane_offset(plane, first, target)
            step = source.strides[first]
            _gather_pixels(begin, step, end, channels, rows.starts, columns.starts, out, target_stride, like, like_out)
        return
    _, count = _span(columns.starts, h_taps)
    blocks = -(-width // _BLOCK) * _BLOCK * h_taps
    lines = 1 if work.columns_first != 0 else _strip_lines(v_taps, size)
    of_strip, of_line = count * channels + _SPARE, width * channels + _SPARE
    strip = room + 4 * _piece(blocks)
    floats = strip + 4 * _piece(_STRIP * of_strip)
    line = floats + 4 * _piece(_MOST_ROWS * _WIDTH)
    zero = np.float32(0)
    pieces = _Scratch(
        elements_at(room, blocks, zero),
        elements_at(strip, lines * of_strip, zero).reshape(lines, of_strip),
        elements_at(floats, _MOST_ROWS * _WIDTH, zero),
        elements_at(line, of_line, zero),
        elements_at(line + 4 * _piece(of_line), source.extents[first] * of_line, zero),
    )
    skipped = left * channels
    read = source.anchor[first], source.anchor[first] + source.extents[first]
    for plane in range(planes):
        flat = elements_at(source.data + _plane_offset(plane, first, source) - origin, 0, like)
        out_begin = target.data + _plane_offset(plane, first, target)
        if work.columns_first != 0:
            _resample_columns_first(
                flat,
                stride,
                channels,
                rows,
                columns,
                read,
                work.rests,
                skipped,
                pieces,
                out_begin,
                target_stride,
                like_out,
            )
        else:
            _resample_lines(
                flat, stride, channels, rows, columns, work.rests, skipped, pieces, out_begin, target_stride, like_out
            )


class ResamplingKernels(NamedTuple):
    """The addresses of kernels that the compiled core calls for ``RESAMPLING`` records."""

    compute: int
    covers: int
    reads: int


@functools.cache
def resampling_kernels(source: np.dtype, target: np.dtype) -> ResamplingKernels:
    """Return the kernels for elements of the types ``source`` and ``target``."""
    return ResamplingKernels(
        address_of(_resample_part, RESAMPLING, PARTS, source, target),
        address_of(_covered, RESAMPLING, MAPPED_REGION),
        address_of(_read, RESAMPLING, MAPPED_REGION),
    )


@kernel
def _resample_inner_axis(
    source: np.ndarray, axis: _Axis, rests: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """Resample the middle axis of source (outer, n, inner) to target (outer, m, inner)."""
    size, count = source.shape[1], source.shape[2]
    flat = source.ravel()
    row = np.empty(count, np.float32)
    for o in range(source.shape[0]):
        for y in range(target.shape[1]):
            begin, start, weights = o * size, np.int64(axis.starts[y]), axis.weights[y]
            _sum_rows(flat, begin * count, count, start, weights, axis.low, axis.high, row, 0, count)
            _round(row, rests, 0, target[o, y], like)


@kernel
def _resample_rows(
    source: np.ndarray, channels: int, columns: _Axis, rests: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """Resample the columns of source (rows, W * C) to target (rows, w * C)."""
    width, taps = columns.weights.shape
    first, count = _span(columns.starts, taps)
    blocks = _blocks(columns.weights, channels, np.empty(-(-width // _BLOCK) * _BLOCK * taps, np.float32))
    row, line = np.empty(count * channels + _SPARE, np.float32), np.empty(width * channels + _SPARE, np.float32)
    one, flat, stride = np.ones(1, np.float32), source.ravel(), source.shape[1]
    for y in range(len(target)):
        _resample_row(flat, y * stride, channels, columns, first, count, blocks, one, row, line)
        _round(line, rests, 0, target[y], like)


@kernel
def _gather_plane(
    source: np.ndarray, channels: int, rows: np.ndarray, columns: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """Copy nearest neighbours of source (H, W * C) to target (h, w * C)."""
    step, target_step, end = source.strides[0], target.strides[0], source.shape[1]
    _gather_pixels(source.ctypes.data, step, end, channels, rows, columns, target.ctypes.data, target_step, like, like)


def _axis(taps: EdgeTaps) -> _Axis:
    return _Axis(taps.starts, taps.weights, taps.low, taps.high)


def resample_axis(source: np.ndarray, axis: int, taps: EdgeTaps, rests: np.ndarray, target: np.ndarray) -> None:
    """Resample one axis of a contiguous array of any rank into an array of the same dtype or float32.

    Args:
        source: the array to resample.
        axis: the number of the axis.
        taps: the axis's taps.
        rests: the ranges of values in which halves are rounded away from zero instead of to even; int64, a begin and an end in each
            row. They count the values that follow a position of the axis: those of all inner dimensions.
        target: contiguous, with the source's shape except for the axis.
    """
    like = target.dtype.type(0)
    _resample_inner_axis(_folded_around(source, axis), _axis(taps), rests, _folded_around(target, axis), like)


def resample_width(source: np.ndarray, channels: int, taps: EdgeTaps, rests: np.ndarray, target: np.ndarray) -> None:
    """Resample the columns of contiguous rows of pixels into an array of the same dtype or float32.

    Args:
        source: the pixels, of any shape.
        channels: the number of values of a pixel.
        taps: the taps of the width.
        rests: as in :func:`resample_axis`, but they count the values of a line.
        target: contiguous, with the same number of rows.
    """
    lines = target.reshape(-1, len(taps.starts) * channels)
    _resample_rows(source.reshape(len(lines), -1), channels, _axis(taps), rests, lines, target.dtype.type(0))


def _folded_around(array: np.ndarray, axis: int) -> np.ndarray:
    outer = int(np.prod(array.shape[:axis], dtype=np.int64))
    return array.reshape(outer, array.shape[axis], -1)


def gather_image(source: np.ndarray, rows: np.ndarray, columns: np.ndarray, target: np.ndarray) -> None:
    """Copy the pixels at (rows[y], columns[x]) of a contiguous image (H, W, C) to target (h, w, C)."""
    lines = target.reshape(target.shape[0], -1)
    _gather_plane(source.reshape(source.shape[0], -1), source.shape[2], rows, columns, lines, target.dtype.type(0))
