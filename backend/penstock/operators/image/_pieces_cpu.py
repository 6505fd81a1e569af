"""Images of uint8 as the patches or tiles of a model, their values looked up in tables, on CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import load, pointer, store
from penstock.operators.image._rescale_normalize_cpu import LANES, compute_row

# Floats that are copied at a time.
_LANES = 8


@inner
def _look_up_row(
    row: np.ndarray, table: np.ndarray, factors: np.ndarray, channels: int, channels_last: bool, line: np.ndarray
) -> None:
    """The values of a row of pixels, in the order of the pixels or one channel after the other."""
    width = row.size // channels
    if len(factors) and channels == 3 and not channels_last and width >= LANES:
        compute_row(pointer(row), 0, width, pointer(factors.ravel()), pointer(line), 0, width)
        return
    for c in range(channels):
        values, source = table[c if len(table) > 1 else 0], row[c::channels]
        target = line[c::channels] if channels_last else line[c * width : (c + 1) * width]
        for x in range(width):
            target[x] = values[source[x]]


@kernel
def _copy(source: np.ndarray, start: int, target: np.ndarray, place: int, count: int) -> None:
    if count < _LANES:
        for k in range(count):
            target[place + k] = source[start + k]
        return
    k = 0
    while k < count:
        # The last vector overlaps the previous one, so that all have the same size.
        k = min(k, count - _LANES)
        store(target, place + k, load(source, start + k, _LANES))
        k += _LANES


@kernel
def fill_patches(
    frames: np.ndarray,
    table: np.ndarray,
    factors: np.ndarray,
    patch: int,
    merge: int,
    temporal: int,
    channels_last: bool,
    out: np.ndarray,
) -> None:
    """Fills ``out`` with the patches of an image or of a video.

    Args:
        frames: uint8 of shape (T, H, W, C), contiguous.
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        factors: by which the same values are computed; may be empty.
        patch: extent of a patch.
        merge: patches are ordered in squares of this size.
        temporal: frames in a patch; where they do not suffice, the last one is repeated.
        channels_last: a patch has the order (H, W, C), not (C, T, H, W).
        out: float32, 1-D.
    """
    count, height, width, channels = frames.shape
    rows, columns = height // patch, width // patch
    # A patch consists of parts, planes in general, and these of runs that follow each other in a row of the image.
    parts, run = (1, patch * channels) if channels_last else (channels, patch)
    area, stride = patch * run, width * channels
    size = parts * temporal * area
    # The values of one row of patches.
    lines = np.empty(patch * stride, np.float32)
    for frame in range(count):
        first = frame % temporal
        # An incomplete patch is filled with the last frame.
        last = temporal if frame == count - 1 else first + 1
        for row in range(rows):
            for y in range(patch):
                line = lines[y * stride : (y + 1) * stride]
                _look_up_row(frames[frame, row * patch + y].ravel(), table, factors, channels, channels_last, line)
            begin = (frame // temporal) * rows * columns + (row // merge) * merge * columns + (row % merge) * merge
            for column in range(columns):
                number = begin + (column // merge) * merge * merge + column % merge
                for part in range(parts):
                    source = part * width + column * run
                    place = number * size + (part * temporal + first) * area
                    for y in range(patch):
                        _copy(lines, source + y * stride, out, place + y * run, run)
                    for t in range(1, last - first):
                        _copy(out, place, out, place + t * area, area)


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
    """Fills ``out`` with the tiles of a canvas on which an image lies.

    Args:
        image: uint8 of shape (H, W, C), contiguous.
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        factors: by which the same values are computed; may be empty.
        top, left: where on the canvas the image begins.
        columns: tiles in a row of the canvas.
        blank: float32 of shape (C,): the value beside the image.
        out: float32 of shape (tiles, C, h, w), contiguous.
    """
    height, width, channels = image.shape
    count, _, high, wide = out.shape
    several, computed = len(table) > 1, len(factors) > 0 and channels == 3
    pixels, numbers, flat = pointer(image.ravel()), pointer(factors.ravel()), pointer(out.ravel())
    for number in range(count):
        row, column = number // columns * high - top, number % columns * wide - left
        begin, end = min(max(-column, 0), wide), max(min(width - column, wide), 0)
        for y in range(high):
            inside = row + y >= 0 and row + y < height and end > begin
            if inside and computed and end - begin >= LANES:
                start = ((row + y) * width + column + begin) * 3
                place = (number * 3 * high + y) * wide + begin
                compute_row(pixels, start, end - begin, numbers, flat, place, high * wide)
                if end - begin == wide:
                    continue
            for c in range(channels):
                target = out[number, c, y]
                if not inside:
                    target[:] = blank[c]
                    continue
                target[:begin] = blank[c]
                target[end:] = blank[c]
                if computed and end - begin >= LANES:
                    continue
                values, part = table[c if several else 0], target[begin:end]
                source = image[row + y, column + begin : column + end, c]
                for x in range(end - begin):
                    part[x] = values[source[x]]
