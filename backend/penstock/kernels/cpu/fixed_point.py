"""Separable resampling of uint8 images in fixed point on the CPU: weights are integers, and each pass is rounded to uint8.

The vertical pass sums whole rows as vectors. The horizontal pass transposes blocks of rows, so that a vector holds one
value from each of several rows; it sums these vectors, and transposes the results back. PyTorch's weights have 16 bits and are
multiplied two at a time, or four if the machine has instructions for that. Pillow's weights have more than 16 bits. In the horizontal pass
over three channels, they are split into an upper part, which counts ``1 << 15`` times, and a lower one, which are multiplied two at a time;
in the vertical pass that took longer than 32-bit products.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.byte_products import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    are_supported,
    high_byte,
    low_byte,
    sum_lines,
    sum_quads,
    transpose_quads,
)
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.simd import at
from penstock.kernels.cpu.simd_integers import (
    adjacent_products,
    load,
    packed,
    pair_products,
    store_rows,
    transpose_block,
    transpose_pixels,
    widened,
    zeros,
)
from penstock.kernels.reference_filters import ReferenceTaps
from penstock.kernels.thread_buffers import ThreadBuffers

BLOCK = 16
"""The number of rows and columns that are transposed at a time; smaller images are padded to this size."""
# The number of adjacent bytes that are computed at a time when four rows are summed at once.
_LINE = 64
# The number of bits of the lower part of weights that do not fit in 16 bits.
_LOWER_BITS = 15
_LOWER = (1 << _LOWER_BITS) - 1


@njit(inline="always", **OPTIONS)
def _pair(first: int, second: int) -> np.int32:
    """Pack two weights of 16 bits into one integer, for ``pair_products``."""
    return np.int32(np.int64(second) << 16 | (np.int64(first) & 0xFFFF))


@inner
def _fits_16_bits(weights: np.ndarray) -> bool:
    return weights.min() >= -(1 << 15) and weights.max() < 1 << 15


@inner
def _sum_row(
    flat: np.ndarray, place: int, stride: int, weights: np.ndarray, short: bool, bits: int, row: np.ndarray, count: int
) -> None:
    """Compute ``row[i] = sum over k of weights[k] * flat[place + k * stride + i]``, for ``i`` below ``count``.

    Args:
        short: whether the weights fit in 16 bits.
    """
    half, i, taps = 1 << (bits - 1), 0, weights.size
    while i < count:
        # The last vector overlaps the previous one, so that all vectors have the same size.
        if count < 64:
            i = min(i, count - 16)
            few, source = zeros(16) + half, place + i
            for k in range(taps):
                few = few + widened(load(flat, source, 16)) * at(weights, k)
                source += stride
            store_rows(row, i, 0, (few >> bits,))
            i += 16
            continue
        i = min(i, count - 64)
        total, source = zeros(64) + half, place + i
        if short:
            for k in range(0, taps - 1, 2):
                pair = _pair(at(weights, k), at(weights, k + 1))
                total = total + pair_products(load(flat, source, 64), load(flat, source + stride, 64), pair)
                source += 2 * stride
            if taps % 2:
                last = load(flat, source, 64)
                total = total + pair_products(last, last, _pair(at(weights, taps - 1), 0))
            store_rows(row, i, 0, (packed(total >> bits),))
        else:
            for k in range(taps):
                total = total + widened(load(flat, source, 64)) * at(weights, k)
                source += stride
            store_rows(row, i, 0, (total >> bits,))
        i += 64


@kernel
def _sum_rows(rows: np.ndarray, starts: np.ndarray, weights: np.ndarray, bits: int, lines: np.ndarray) -> None:
    """Do the vertical pass: rows (H, n) -> lines (h, n)."""
    flat, stride, short = rows.ravel(), rows.shape[1], _fits_16_bits(weights)
    for y in range(starts.size):
        _sum_row(flat, starts[y] * stride, stride, weights[y], short, bits, lines[y], stride)


@inner
def _sum_transposed(
    columns: np.ndarray,
    channels: int,
    first: int,
    starts: np.ndarray,
    weights: np.ndarray,
    bits: int,
    lines: np.ndarray,
) -> None:
    """Do the horizontal pass over a transposed block of rows, from column ``first`` on: (n, block) -> (w * C, block)."""
    taps, flat = weights.shape[1], weights.ravel()
    half, step = 1 << (bits - 1), channels * 16
    for x in range(starts.size):
        pixel, end = (starts[x] * channels - first) * 16, x * step
        for c in range(channels):
            one, source = zeros(16) + half, pixel + c * 16
            for k in range(x * taps, (x + 1) * taps):
                one = one + widened(load(columns, source, 16)) * at(flat, k)
                source += step
            store_rows(lines, end + c * 16, 0, (one >> bits,))


@inner
def _sum_pixels(columns: np.ndarray, places: np.ndarray, pairs: np.ndarray, bits: int, lines: np.ndarray) -> None:
    """Do the horizontal pass over three-channel pixels from ``transpose_pixels``: (n / 2, C, block, 2) -> (w * C,
    block).

    Args:
        places: the position of the first pair of input pixels of each output pixel.
        pairs: the weights, two in each integer, of shape (w, pairs).
    """
    half, count, weights = 1 << (bits - 1), pairs.shape[1], pairs.ravel()
    for x in range(places.size):
        place = places[x] * 96
        red, green, blue = zeros(16) + half, zeros(16) + half, zeros(16) + half
        for k in range(x * count, (x + 1) * count):
            weight = at(weights, k)
            red = red + adjacent_products(columns, place, weight, 16)
            green = green + adjacent_products(columns, place + 32, weight, 16)
            blue = blue + adjacent_products(columns, place + 64, weight, 16)
            place += 96
        store_rows(lines, x * 48, 16, (red >> bits, green >> bits, blue >> bits))


@inner
def _sum_pixels_by_parts(
    columns: np.ndarray, places: np.ndarray, uppers: np.ndarray, lowers: np.ndarray, bits: int, lines: np.ndarray
) -> None:
    """Same as :func:`_sum_pixels`, for weights whose upper and lower parts are in two arrays."""
    half, count, upper, lower = 1 << (bits - 1), uppers.shape[1], uppers.ravel(), lowers.ravel()
    for x in range(places.size):
        for c in range(0, 96, 32):
            place, above, below = places[x] * 96 + c, zeros(16), zeros(16) + half
            for k in range(x * count, (x + 1) * count):
                above = above + adjacent_products(columns, place, at(upper, k), 16)
                below = below + adjacent_products(columns, place, at(lower, k), 16)
                place += 96
            store_rows(lines, x * 48 + c // 2, 0, (((above << _LOWER_BITS) + below) >> bits,))


@inner
def _pair_weights(starts: np.ndarray, weights: np.ndarray, places: np.ndarray, pairs: np.ndarray) -> None:
    """Pack the weights of pairs of input pixels; each pair begins at an even distance from the smallest start."""
    taps, first = weights.shape[1], starts.min()
    pairs[:] = 0
    for x in range(starts.size):
        odd = (starts[x] - first) % 2
        places[x] = (starts[x] - first) // 2
        for k in range(taps):
            pairs[x, (k + odd) // 2] |= np.int32((np.int64(weights[x, k]) & 0xFFFF) << (16 * ((k + odd) % 2)))


@inner
def _transpose_pixels(
    flat: np.ndarray, place: int, stride: int, count: int, columns: np.ndarray, by_four: bool
) -> None:
    """Transpose ``count`` pixels of three channels in each of a block of rows, by ``transpose_pixels`` or
    ``transpose_quads``.
    """
    # Each step reads four bytes beyond its pixels. After the last row no such bytes exist, so its last pixels are copied one by one.
    whole = max(count - 2, 0) // 4 * 4
    for x in range(0, whole, 4):
        _transpose_four(flat, place + 3 * x, stride, columns, x * 48, by_four)
    ends = np.empty(16 * 16, np.uint8)
    for x in range(whole, count, 4):
        some = 3 * min(count - x, 4)
        for y in range(16):
            begin = place + y * stride + 3 * x
            for i in range(some):
                ends[16 * y + i] = flat[begin + i]
        _transpose_four(ends, 0, 16, columns, x * 48, by_four)


@njit(inline="always", **OPTIONS)
def _transpose_four(flat: np.ndarray, place: int, stride: int, columns: np.ndarray, end: int, by_four: bool) -> None:
    if by_four:
        transpose_quads(flat, place, stride, columns, end)
    else:
        transpose_pixels(flat, place, stride, columns, end)


@kernel
def _transpose_columns(flat: np.ndarray, place: int, stride: int, columns: np.ndarray, count: int) -> None:
    """Transpose ``count`` columns, at least ``BLOCK``, of a block of rows: (block, n) -> (n, block)."""
    x = 0
    while x < count:
        x = min(x, count - 16)
        transpose_block(flat, place + x, stride, columns, x * 16, 16, 16)
        x += 16


@inner
def _transpose_back(columns: np.ndarray, flat: np.ndarray, place: int, stride: int, count: int) -> None:
    """Undo :func:`_transpose_columns`."""
    x = 0
    while x < count:
        x = min(x, count - 16)
        transpose_block(columns, x * 16, 16, flat, place + x, stride, 16)
        x += 16


@kernel
def _sum_columns(
    rows: np.ndarray, channels: int, starts: np.ndarray, weights: np.ndarray, bits: int, lines: np.ndarray
) -> None:
    """Do the horizontal pass: rows (H, W * C) -> lines (H, w * C); both may have padding on the right."""
    flat, stride = rows.ravel(), rows.shape[1]
    ends, width = lines.ravel(), lines.shape[1]
    transposed = np.empty(width * 16, np.uint8)
    if channels == 3:
        _sum_columns_of_pixels(flat, stride, rows.shape[0], starts, weights, bits, transposed, ends, width)
        return
    count = max((starts.max() + weights.shape[1] - starts.min()) * channels, 16)
    first = min(starts.min() * channels, stride - count)
    columns = np.empty(count * 16, np.uint8)
    y = 0
    while y < rows.shape[0]:
        y = min(y, rows.shape[0] - 16)
        _transpose_columns(flat, y * stride + first, stride, columns, count)
        _sum_transposed(columns, channels, first, starts, weights, bits, transposed)
        _transpose_back(transposed, ends, y * width, width, width)
        y += 16


@inner
def _sum_columns_of_pixels(
    flat: np.ndarray,
    stride: int,
    height: int,
    starts: np.ndarray,
    weights: np.ndarray,
    bits: int,
    transposed: np.ndarray,
    ends: np.ndarray,
    width: int,
) -> None:
    first, taps = starts.min(), weights.shape[1]
    count = starts.max() + taps - first
    pairs, places = np.empty((starts.size, taps // 2 + 1), np.int32), np.empty(starts.size, np.int64)
    short = _fits_16_bits(weights)
    lowers = np.empty_like(pairs)
    if short:
        _pair_weights(starts, weights, places, pairs)
    else:
        _pair_weights(starts, weights >> _LOWER_BITS, places, pairs)
        _pair_weights(starts, weights & _LOWER, places, lowers)
    # The last pixel's pair may end beyond it, with a weight of zero.
    columns = np.zeros((count // 4 + 2) * 192, np.uint8)
    y = 0
    while y < height:
        y = min(y, height - 16)
        _transpose_pixels(flat, y * stride + 3 * first, stride, count, columns, False)
        if short:
            _sum_pixels(columns, places, pairs, bits, transposed)
        else:
            _sum_pixels_by_parts(columns, places, pairs, lowers, bits, transposed)
        _transpose_back(transposed, ends, y * width, width, width)
        y += 16


@inner
def _are_two_bytes(weights: np.ndarray) -> bool:
    return weights.min() >= LEAST_WEIGHT and weights.max() <= MOST_WEIGHT


@inner
def _split_weights(weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the bytes of weights packed in integers: for every four weights, one integer of high bytes, then one of low bytes.

    Args:
        weights: an array of shape (outputs, taps).
        places: for each output, the position of its first weight within a group of four.
    """
    count, taps = weights.shape
    split = np.zeros((count, (taps + places.max() + 3) // 4, 2), np.int32)
    for x in range(count):
        for k in range(taps):
            place, shift = (places[x] + k) // 4, np.int32((places[x] + k) % 4 * 8)
            split[x, place, 0] |= high_byte(weights[x, k]) << shift
            split[x, place, 1] |= low_byte(weights[x, k]) << shift
    return split


@inner
def _sum_rows_by_four(rows: np.ndarray, starts: np.ndarray, weights: np.ndarray, bits: int, lines: np.ndarray) -> None:
    """Same as :func:`_sum_rows`, four rows at a time."""
    flat, stride, target = rows.ravel(), rows.shape[1], lines.ravel()
    if stride < _LINE or not _are_two_bytes(weights):
        _sum_rows(rows, starts, weights, bits, lines)
        return
    split = _split_weights(weights, np.zeros(starts.size, np.int32))
    taps, own, numbers = weights.shape[1], split[0].size, split.ravel()
    for y in range(starts.size):
        x = 0
        while x < stride:
            # The last vector overlaps the previous one, so that all vectors have the same size.
            x = min(x, stride - _LINE)
            sum_lines(flat, starts[y] * stride + x, stride, numbers, y * own, taps, bits, target, y * stride + x)
            x += _LINE


@inner
def _sum_columns_by_four(
    rows: np.ndarray, channels: int, starts: np.ndarray, weights: np.ndarray, bits: int, lines: np.ndarray
) -> None:
    """Same as :func:`_sum_columns`, four columns at a time."""
    if channels != 3 or not _are_two_bytes(weights):
        _sum_columns(rows, channels, starts, weights, bits, lines)
        return
    flat, stride, ends, width = rows.ravel(), rows.shape[1], lines.ravel(), lines.shape[1]
    first = starts.min()
    count = starts.max() + weights.shape[1] - first
    split = _split_weights(weights, (starts - first) % 4)
    fours, numbers = split.shape[1], split.ravel()
    # The last group of four pixels may end beyond the row; pixels there have the weight zero.
    columns, transposed = np.zeros((count // 4 + 2) * 192, np.uint8), np.empty(width * 16, np.uint8)
    y = 0
    while y < rows.shape[0]:
        y = min(y, rows.shape[0] - 16)
        _transpose_pixels(flat, y * stride + 3 * first, stride, count, columns, True)
        for x in range(starts.size):
            place = (starts[x] - first) // 4 * 192
            sum_quads(columns, place, numbers, x * fours * 2, fours, bits, transposed, x * 48)
        _transpose_back(transposed, ends, y * width, width, width)
        y += 16


@kernel
def sum_rows(rows: np.ndarray, starts: np.ndarray, weights: np.ndarray, bits: int, lines: np.ndarray) -> None:
    """Do the vertical pass in the fastest way for this machine: rows (H, n) -> lines (h, n), n at least ``BLOCK``."""
    if are_supported():
        _sum_rows_by_four(rows, starts, weights, bits, lines)
    else:
        _sum_rows(rows, starts, weights, bits, lines)


@kernel
def sum_columns(
    rows: np.ndarray, channels: int, starts: np.ndarray, weights: np.ndarray, bits: int, lines: np.ndarray
) -> None:
    """Do the horizontal pass in the fastest way for this machine: rows (H, W * C) -> lines (H, w * C), H and both widths at
    least ``BLOCK``.
    """
    if are_supported():
        _sum_columns_by_four(rows, channels, starts, weights, bits, lines)
    else:
        _sum_columns(rows, channels, starts, weights, bits, lines)


@kernel
def _resample_both(
    rows: np.ndarray,
    channels: int,
    row_starts: np.ndarray,
    row_weights: np.ndarray,
    row_bits: int,
    starts: np.ndarray,
    weights: np.ndarray,
    bits: int,
    between: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Do both passes, the horizontal one first.

    Args:
        between: filled with the results of the horizontal pass, for the rows that the vertical pass reads.
    """
    first = row_starts.min()
    sum_columns(rows[first : first + between.shape[0]], channels, starts, weights, bits, between)
    sum_rows(between, row_starts - np.int32(first), row_weights, row_bits, lines)


_between = ThreadBuffers()


def resample_image(
    source: np.ndarray,
    vertical: ReferenceTaps,
    horizontal: ReferenceTaps,
    target: np.ndarray,
    columns_first: bool = True,
) -> None:
    """Resample an image in two passes, each with a uint8 result. An axis that is only cropped has no pass.

    Args:
        source: contiguous, of shape (H, W, C), of uint8.
        vertical, horizontal: the taps of each axis, or of a window of it; weights are integers.
        target: contiguous, of shape (h, w, C), of uint8.
        columns_first: whether to do the horizontal pass first.
    """
    rows, channels = source.reshape(source.shape[0], -1), source.shape[2]
    lines = target.reshape(target.shape[0], -1)
    kept_rows, kept_columns = kept_positions(vertical), kept_positions(horizontal)
    if kept_columns is not None:
        kept = np.s_[kept_columns.start * channels : kept_columns.stop * channels]
        if kept_rows is not None:
            lines[...] = rows[kept_rows, kept]
        else:
            _resample_rows(np.ascontiguousarray(rows[:, kept]), vertical, lines)
    elif kept_rows is not None:
        _resample_columns(rows[kept_rows], channels, horizontal, lines)
    elif columns_first:
        first = int(vertical.starts.min())
        count = int(vertical.starts.max()) + vertical.weights.shape[1] - first
        between = _between.array((count, lines.shape[1]), lines.dtype)
        if min(count, lines.shape[1], rows.shape[1]) >= BLOCK:
            _resample_both(rows, channels, *vertical, *horizontal, between, lines)
            return
        _resample_columns(rows[first : first + count], channels, horizontal, between)
        _resample_rows(between, vertical._replace(starts=vertical.starts - np.int32(first)), lines)
    else:
        between = np.empty((lines.shape[0], rows.shape[1]), np.uint8)
        _resample_rows(rows, vertical, between)
        _resample_columns(between, channels, horizontal, lines)


def kept_positions(taps: ReferenceTaps) -> slice | None:
    """Return the range of input positions that an axis copies unchanged and in order; None if the axis has to be resampled."""
    starts, weights, bits = taps
    if weights.shape[1] > 1:
        return None
    first, count = int(starts[0]), len(starts)
    if int(starts[-1]) != first + count - 1:
        return None
    same = (weights == 1 << bits).all() and (starts == np.arange(first, first + count)).all()
    return slice(first, first + count) if same else None


def _resample_rows(rows: np.ndarray, taps: ReferenceTaps, lines: np.ndarray) -> None:
    width = lines.shape[1]
    if width < BLOCK:
        wider = _padded(lines, 0)
        sum_rows(_padded(rows, 0), *taps, wider)
        lines[...] = wider[:, :width]
    else:
        sum_rows(rows, *taps, lines)


def _resample_columns(rows: np.ndarray, channels: int, taps: ReferenceTaps, lines: np.ndarray) -> None:
    height, width = lines.shape
    if min(height, width, rows.shape[1]) < BLOCK:
        larger = _padded(lines, BLOCK)
        sum_columns(_padded(rows, BLOCK), channels, *taps, larger)
        lines[...] = larger[:height, :width]
    else:
        sum_columns(rows, channels, *taps, lines)


def _padded(rows: np.ndarray, least: int) -> np.ndarray:
    """Return rows padded with zeros: to at least ``least`` rows, and to at least the width of a block."""
    height, width = rows.shape
    padded = np.zeros((max(height, least), max(width, BLOCK)), np.uint8)
    padded[:height, :width] = rows
    return padded
