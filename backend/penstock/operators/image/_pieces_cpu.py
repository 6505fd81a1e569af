"""Cutting uint8 images into a model's patches or tiles on the CPU, with normalized values looked up in tables or computed."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.pixel_values import (
    LANES,
    is_beyond_cache,
    is_written_past_cache,
    spread_factors,
    store_values,
)
from penstock.kernels.cpu.simd import at, fence, load, load_channel, pointer, pointer_at, store
from penstock.kernels.cpu.simd_integers import put
from penstock.operators.image._rescale_normalize_cpu import compute_row

# Number of pixels of a patch computed at once; narrower patches use the lookup table.
_LANES = 8
# Number of values in that many pixels of three channels.
_RUN = 3 * _LANES


@kernel
def fill_patches(
    frames: np.ndarray,
    top: int,
    left: int,
    height: int,
    width: int,
    table: np.ndarray,
    factors: np.ndarray,
    patch: int,
    merge: int,
    temporal: int,
    channels_last: bool,
    past_cache: bool,
    out: np.ndarray,
) -> None:
    """Write the patches of a region of an image or a video to ``out``, sequentially because memory is fastest this way.

    Args:
        frames: uint8 of shape (T, H, W, C), contiguous.
        top, left, height, width: the region, in pixels.
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        factors: factors that compute the table's values (see :func:`factors_of`); may be empty.
        patch: height and width of a patch.
        merge: patches are written in squares of ``merge`` x ``merge`` patches.
        temporal: number of frames in a patch; if the last patch has fewer, the last frame is repeated.
        channels_last: whether the values of a patch are ordered (H, W, C) instead of (C, T, H, W).
        past_cache: whether to write ``out`` past the cache: see :func:`is_beyond_cache`.
        out: float32, 1-D.
    """
    count, _, _, channels = frames.shape
    square, stride = patch * merge, frames.shape[2] * channels
    corner, frame_size = top * stride + left * channels, frames.shape[1] * stride
    # Values that are rounded to bfloat16 are always looked up: no model takes such patches, so speed does not matter.
    computed = len(factors) > 0 and factors[0, 3] == 0 and channels == 3 and patch >= _LANES
    pixels, values = frames.reshape(-1), table.reshape(-1)
    spread = spread_factors(factors, _LANES) if computed else np.empty(0, np.float32)
    # Distance from one channel's values in the table to the next channel's.
    step = 256 if len(table) > 1 else 0
    size = patch * patch * (channels if channels_last else 1)
    # `held` has room for a patch, or one channel of it, after `left` values that are not written yet: less than a cache line.
    held, left, done = np.empty(size + 2 * LANES, np.float32), 0, 0
    values_held, values_out, address = pointer(held), pointer(out), np.int64(out.ctypes.data) // 4
    for time in range((count + temporal - 1) // temporal):
        for square_row in range(height // square):
            for square_column in range(width // square):
                for number in range(merge * merge):
                    row = square_row * square + number // merge * patch
                    column = square_column * square + number % merge * patch
                    # The offset of the patch's first value within a frame.
                    begin = corner + row * stride + column * channels
                    for part in range(1 if channels_last else channels * temporal):
                        channel, frame = part // temporal, min(time * temporal + part % temporal, count - 1)
                        source = begin + frame * frame_size
                        if channels_last and computed:
                            _compute_pixels(pixels, source, stride, patch, spread, held, left)
                        elif channels_last:
                            _look_up_pixels(pixels, source, stride, patch, channels, values, step, held, left)
                        elif computed:
                            _compute_channel(pixels, source, stride, patch, factors, channel, held, left)
                        else:
                            own = values[channel * step : channel * step + 256]
                            _look_up_channel(pixels, source + channel, stride, patch, channels, own, held, left)
                        offset = (address + done) % LANES
                        written = _write_lines(values_held, left + size, values_out, done, offset, past_cache)
                        left += size - written
                        done += written
    for k in range(left):
        out[done + k] = held[k]
    fence()


@kernel
def fill_rows(
    image: np.ndarray,
    top: int,
    begin: int,
    height: int,
    width: int,
    table: np.ndarray,
    factors: np.ndarray,
    column: int,
    past_cache: bool,
    out: np.ndarray,
) -> None:
    """Write the patches of a region of an image side by side; each row of patches follows the previous row on its right.

    Args:
        image: uint8 of shape (H, W, C), contiguous.
        top, begin, height, width: the region, in pixels; ``begin`` is its first column.
        table, factors, past_cache: as for :func:`fill_patches`.
        column: the first column of ``out`` to write.
        out: float32 of shape (C, patch, columns), contiguous.
    """
    channels, patch, columns = out.shape
    computed = len(factors) > 0 and channels == 3 and width >= LANES
    size = width + 3 * LANES
    held, rests = np.empty((channels, size), np.float32), np.empty((channels, LANES), np.float32)
    left, done = np.empty(channels, np.int64), np.empty(channels, np.int64)
    # Pass pointers, since numba counts references to arrays at each call. Local variables keep the arrays alive.
    pixels, numbers, flat = pointer(image.reshape(-1)), pointer(factors.reshape(-1)), pointer(held.reshape(-1))
    rest, lefts, places = pointer(rests.reshape(-1)), pointer(left), pointer(done)
    target, address = pointer(out.reshape(-1)), np.int64(out.ctypes.data) // 4
    for first in range(patch):
        for c in range(channels):
            left[c], done[c] = 0, (c * patch + first) * columns + column
        for y in range(first, height, patch):
            if computed:
                start = ((top + y) * image.shape[1] + begin) * channels
                compute_row(pixels, start, width, numbers, flat, LANES, size, False)
            for c in range(0 if computed else channels):
                own, row = table[c if len(table) > 1 else 0], image[top + y, begin : begin + width, c]
                for x in range(width):
                    held[c, LANES + x] = own[row[x]]
            _write_rows(flat, size, channels, width, rest, lefts, places, past_cache, target, address)
        _write_rests(rests, left, done, target)
    fence()


@inner
def _write_rows(
    held: types.CPointer,
    size: int,
    channels: int,
    width: int,
    rests: types.CPointer,
    left: types.CPointer,
    done: types.CPointer,
    past_cache: bool,
    out: types.CPointer,
    address: int,
) -> None:
    """Append a row of each channel to the channel's output, as far as it fills whole cache lines.

    Args:
        held: float32, ``size`` elements per channel: ``LANES`` unused elements, a row of ``width`` values, more unused elements.
        rests: ``LANES`` elements per channel: the values of previous rows that did not fill a cache line.
        left: number of values in ``rests``, for each channel.
        done: the next write position in ``out``, for each channel.
        past_cache: whether to write lines past the cache.
        address: the address of ``out``, divided by the size of a value.
    """
    for c in range(channels):
        rest, place = at(left, c), at(done, c)
        begin = c * size + LANES - rest
        for k in range(rest):
            put(held, begin + k, at(rests, c * LANES + k))
        offset = (address + place) % LANES
        written = _write_lines(pointer_at(held, begin), rest + width, out, place, offset, past_cache)
        rest += width - written
        put(left, c, rest)
        put(done, c, place + written)
        for k in range(rest):
            put(rests, c * LANES + k, at(held, begin + k))


@inner
def _write_rests(rests: np.ndarray, left: np.ndarray, done: np.ndarray, out: types.CPointer) -> None:
    """Write the values that are left in ``rests`` for each channel: see :func:`_write_rows`."""
    for c in range(len(left)):
        for k in range(left[c]):
            put(out, done[c] + k, rests[c, k])


@njit(inline="always", **OPTIONS)
def _write_lines(
    held: types.CPointer, count: int, out: types.CPointer, done: int, offset: int, past_cache: bool
) -> int:
    """Write whole cache lines of the buffered values, and move the remainder, less than a line, to the start of the buffer.

    Args:
        held: the buffer: ``count`` values of float32, followed by room for a line.
        out: the array to write to, starting at position ``done``.
        offset: the distance of position ``done`` from the start of its cache line, in values.

    Returns:
        The number of values written.
    """
    if count < LANES:
        return 0
    written = 0
    if past_cache and offset:
        # Fill the current line by writing a whole vector; what it writes beyond the line is overwritten next.
        store(out, done, load(held, 0, LANES))
        written = LANES - offset
    while written + LANES <= count:
        store_values(out, done + written, load(held, written, LANES), past_cache)
        written += LANES
    store(held, 0, load(held, written, LANES))
    return written


@inner
def _compute_pixels(
    pixels: np.ndarray, source: int, stride: int, patch: int, spread: np.ndarray, out: np.ndarray, place: int
) -> None:
    """Compute the values of a patch with ``spread`` factors, pixel by pixel."""
    for _ in range(patch):
        x = 0
        while x < patch:
            # The last vectors of a row overlap the previous ones.
            x = min(x, patch - _LANES)
            for k in range(0, _RUN, _LANES):
                a, b, c = (load(spread, k, _LANES), load(spread, k + _RUN, _LANES), load(spread, k + 2 * _RUN, _LANES))
                store(out, place + 3 * x + k, (load(pixels, source + 3 * x + k, _LANES) * a - b) / c)
            x += _LANES
        place += 3 * patch
        source += stride


@inner
def _compute_channel(
    pixels: np.ndarray,
    source: int,
    stride: int,
    patch: int,
    factors: np.ndarray,
    channel: int,
    out: np.ndarray,
    place: int,
) -> None:
    """Compute the values of one of a patch's three channels with its factors."""
    a, b, c = factors[channel, 0], factors[channel, 1], factors[channel, 2]
    for _ in range(patch):
        x = 0
        while x < patch:
            x = min(x, patch - _LANES)
            store(out, place + x, (load_channel(pixels, source + 3 * x + channel) * a - b) / c)
            x += _LANES
        place += patch
        source += stride


@inner
def _look_up_pixels(
    pixels: np.ndarray,
    source: int,
    stride: int,
    patch: int,
    channels: int,
    values: np.ndarray,
    step: int,
    out: np.ndarray,
    place: int,
) -> None:
    """Look up the values of a patch, pixel by pixel; the tables of successive channels begin ``step`` values apart."""
    for _ in range(patch):
        for k in range(patch * channels):
            out[place + k] = values[k % channels * step + pixels[source + k]]
        place += patch * channels
        source += stride


@inner
def _look_up_channel(
    pixels: np.ndarray,
    source: int,
    stride: int,
    patch: int,
    channels: int,
    values: np.ndarray,
    out: np.ndarray,
    place: int,
) -> None:
    """Look up the values of one channel of a patch in its table."""
    for _ in range(patch):
        for x in range(patch):
            out[place + x] = values[pixels[source + x * channels]]
        place += patch
        source += stride


@kernel
def fill_tiles(
    image: np.ndarray,
    table: np.ndarray,
    factors: np.ndarray,
    top: int,
    left: int,
    columns: int,
    blank: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill ``out`` with the tiles of a canvas that contains an image.

    Args:
        image: uint8 of shape (H, W, C), contiguous.
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        factors: factors that compute the table's values (see :func:`factors_of`); may be empty.
        top, left: position of the image on the canvas.
        columns: number of tiles in a row of the canvas.
        blank: float32 of shape (C,): each channel's value outside the image.
        out: float32 of shape (tiles, C, h, w), contiguous.
    """
    height, width, channels = image.shape
    count, _, high, wide = out.shape
    aligned, area, size = is_written_past_cache(out, wide, high * wide), high * wide, wide + 3 * LANES
    held, rests = np.empty((channels, size), np.float32), np.empty((channels, LANES), np.float32)
    left_over, done = np.empty(channels, np.int64), np.empty(channels, np.int64)
    # Pass pointers, since numba counts references to arrays at each call. Local variables keep the arrays alive.
    pixels, tables, step = pointer(image.reshape(-1)), pointer(table.reshape(-1)), 256 if len(table) > 1 else 0
    numbers, blanks, computed = pointer(factors.reshape(-1)), pointer(blank), len(factors) > 0 and channels == 3
    target, address = pointer(out.reshape(-1)), np.int64(out.ctypes.data) // 4
    rest, lefts, places = pointer(rests.reshape(-1)), pointer(left_over), pointer(done)
    for number in range(count):
        row, column, first = number // columns * high - top, number % columns * wide - left, number * channels * area
        begin, end = min(max(-column, 0), wide), max(min(width - column, wide), 0)
        past_cache = aligned and begin % LANES == 0 and end % LANES == 0
        # Rows that do not consist of whole cache lines are collected in a buffer, from which whole lines are written past the cache.
        gathers = is_beyond_cache(out) and not past_cache
        own, where, stride = (pointer(held.reshape(-1)), LANES, size) if gathers else (target, first, area)
        for c in range(channels):
            left_over[c], done[c] = 0, first + c * area
        for y in range(high):
            inside = row + y >= 0 and row + y < height and end > begin
            start = ((row + y) * width + column + begin) * channels
            if not inside:
                for c in range(channels):
                    _fill(own, where + c * stride, wide, at(blanks, c))
            else:
                for c in range(channels):
                    _fill(own, where + c * stride, begin, at(blanks, c))
                    _fill(own, where + c * stride + end, wide - end, at(blanks, c))
                if computed and end - begin >= LANES:
                    compute_row(pixels, start, end - begin, numbers, own, where + begin, stride, past_cache)
                else:
                    for c in range(channels):
                        for x in range(end - begin):
                            value = at(tables, c * step + at(pixels, start + x * channels + c))
                            put(own, where + c * stride + begin + x, value)
            if gathers:
                _write_rows(own, size, channels, wide, rest, lefts, places, True, target, address)
            else:
                where += wide
        if gathers:
            _write_rests(rests, left_over, done, target)
    fence()


@inner
def _fill(out: types.CPointer, place: int, count: int, value: np.float32) -> None:
    for k in range(count):
        put(out, place + k, value)
