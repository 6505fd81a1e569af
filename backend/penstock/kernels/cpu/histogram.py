"""Histograms of images, and histogram equalization."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.audio import reflected
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import at
from penstock.kernels.cpu.simd_integers import load_word

# The number of counters per value, used in turns: adjacent pixels are often equal, and incrementing a counter twice in a row would have to
# wait for the first increment to be stored.
_TURNS = 4


@inner
def _equalizing_table(counts: np.ndarray, total: int, table: np.ndarray) -> None:
    """Fill a table that maps each value to the share of pixels not above the value, scaled to 0 to 255; pixels of the minimum value are
    not counted.
    """
    least = 0
    while counts[least] == 0:
        least += 1
    if counts[least] == total:
        table[:] = least
        return
    scale = np.float32(255) / np.float32(total - counts[least])
    table[: least + 1] = 0
    below = 0
    for value in range(least + 1, 256):
        below += counts[value]
        # Ties are rounded to even.
        table[value] = np.uint8(np.rint(np.float32(below) * scale))


@kernel
def _count(source: np.ndarray, channels: int, flat: np.ndarray) -> None:
    """Count the values of an image; ``flat``: counters of shape (channels, _TURNS, 256), flattened."""
    step = _TURNS * 256
    if channels == 3:
        # All three channels are counted in one pass over the pixels.
        for p in range(source.size // 3):
            place, turn = p * 3, p % _TURNS * 256
            flat[turn + at(source, place)] += 1
            flat[turn + step + at(source, place + 1)] += 1
            flat[turn + 2 * step + at(source, place + 2)] += 1
        return
    for channel in range(channels):
        for p in range(source.size // channels):
            flat[channel * step + p % _TURNS * 256 + at(source, p * channels + channel)] += 1


@inner
def _look_up(source: np.ndarray, channels: int, table: np.ndarray, target: np.ndarray) -> None:
    """Look up each value in the table of its channel; ``table`` holds 256 entries for each channel."""
    begin = 0
    if channels == 3:
        # Eight pixels at a time, read as three words.
        begin = source.size - source.size % 24
        for block in range(0, begin, 24):
            for word in range(0, 24, 8):
                values = load_word(source, block + word)
                for i in range(8):
                    entry = (values >> np.uint64(56 - 8 * i)) & np.uint64(255)
                    # Indices are unsigned, so that no check for negative ones is compiled.
                    target[np.uint64(block + word + i)] = at(table, np.uint64((word + i) % 3 * 256) + entry)
    for channel in range(channels):
        for place in range(begin + channel, source.size, channels):
            target[place] = at(table, channel * 256 + at(source, place))


@kernel
def _equalize(source: np.ndarray, channels: int, target: np.ndarray) -> None:
    """Equalize flat arrays of pixels with ``channels`` channels."""
    counts = np.zeros((channels, _TURNS, 256), np.int32)
    _count(source, channels, counts.ravel())
    tables = np.empty((channels, 256), np.uint8)
    for channel in range(channels):
        _equalizing_table(counts[channel].sum(axis=0), source.size // channels, tables[channel])
    _look_up(source, channels, tables.ravel(), target)


def equalize(source: np.ndarray, target: np.ndarray) -> None:
    """Equalize the histogram of each channel.

    Args:
        source, target: uint8 of shape (..., channels), contiguous, not empty.
    """
    _equalize(source.reshape(-1), source.shape[-1], target.reshape(-1))


@inner
def _count_tile(source: np.ndarray, top: int, left: int, height: int, width: int, counts: np.ndarray) -> None:
    """Count the values of a tile; ``counts`` has the shape (_TURNS, 256). Beyond its borders, the image (H, W) is reflected."""
    inside = min(width, source.shape[1] - left)
    for y in range(top, top + height):
        row = source[y if y < source.shape[0] else reflected(y, source.shape[0])]
        for x in range(inside):
            counts[x % _TURNS, row[left + x]] += 1
        for x in range(max(inside, 0), width):
            counts[0, row[reflected(left + x, source.shape[1])]] += 1


@inner
def _limited_table(counts: np.ndarray, area: int, limit: int, table: np.ndarray) -> None:
    """Fill a table that maps each value to the share of the tile's pixels not above the value, scaled to 0 to 255, after each value's
    count is limited to ``limit``; 0: unlimited.
    """
    if limit > 0:
        excess = 0
        for value in range(256):
            excess += max(counts[value] - limit, 0)
            counts[value] = min(counts[value], limit)
        # What exceeds the limit is distributed evenly over all values, and the remainder over values at equal distances.
        counts += excess // 256
        rest = excess % 256
        distance = max(256 // max(rest, 1), 1)
        for number in range(rest):
            counts[number * distance] += 1
    scale, below = np.float32(255) / np.float32(area), 0
    for value in range(256):
        below += counts[value]
        table[value] = np.uint8(min(np.rint(np.float32(below) * scale), np.float32(255)))


@inner
def _between(place: int, extent: int, tiles: int) -> tuple[int, int, np.float32]:
    """Return, for one axis, the numbers of the two tiles whose centres are next to a pixel on either side, and the weight of the second."""
    position = np.float32(place) * (np.float32(1) / np.float32(extent)) - np.float32(0.5)
    first = int(np.floor(position))
    return max(first, 0), min(first + 1, tiles - 1), position - np.float32(first)


@inner
def _blend(
    source: np.ndarray,
    lefts: np.ndarray,
    rights: np.ndarray,
    nearness: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    fy: np.float32,
    target: np.ndarray,
) -> None:
    """Compute a row of pixels. Each is interpolated between its values in four tables: those that begin at ``lefts`` and ``rights`` in
    the rows of tables ``upper`` and ``lower``.
    """
    one = np.float32(1)
    for x in range(source.size):
        left, right, fx = np.uint64(lefts[x] + source[x]), np.uint64(rights[x] + source[x]), nearness[x]
        above = np.float32(at(upper, left)) * (one - fx) + np.float32(at(upper, right)) * fx
        below = np.float32(at(lower, left)) * (one - fx) + np.float32(at(lower, right)) * fx
        target[x] = np.uint8(np.rint(above * (one - fy) + below * fy))


@kernel
def _equalize_tiles(
    source: np.ndarray, tiles: tuple[int, int], extents: tuple[int, int], limit: int, target: np.ndarray
) -> None:
    height, width = source.shape
    rows, columns = tiles
    tables = np.empty((rows, columns * 256), np.uint8)
    for row in range(rows):
        for column in range(columns):
            counts = np.zeros((_TURNS, 256), np.int32)
            _count_tile(source, row * extents[0], column * extents[1], *extents, counts)
            table = tables[row, column * 256 : (column + 1) * 256]
            _limited_table(counts.sum(axis=0), extents[0] * extents[1], limit, table)
    lefts, rights, nearness = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.float32)
    for x in range(width):
        left, right, nearness[x] = _between(x, extents[1], columns)
        lefts[x], rights[x] = left * 256, right * 256
    for y in range(height):
        upper, lower, fy = _between(y, extents[0], rows)
        _blend(source[y], lefts, rights, nearness, tables[upper], tables[lower], fy, target[y])


def equalize_tiles(
    source: np.ndarray, tiles: tuple[int, int], extents: tuple[int, int], limit: int, target: np.ndarray
) -> None:
    """Equalize the histograms of tiles, interpolating between the results of neighbouring tiles.

    Args:
        source, target: uint8 of shape (H, W), with any strides, not empty.
        tiles: the numbers of rows and columns of tiles.
        extents: the height and width of each tile. Tiles may reach beyond the image, which is reflected there.
        limit: the maximum count of a value in a tile; 0: unlimited.
    """
    _equalize_tiles(source, tiles, extents, limit, target)
