"""Decode the JPEGs of a batch, and resize and store the pixels while they are in the cache: one compiled call for each thread."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import carray
from penstock.kernels.cpu.fixed_point import BLOCK, sum_columns
from penstock.kernels.cpu.foreign import bytes_from, counted
from penstock.kernels.cpu.jpeg.files import COLUMNS, LEFT, ROWS, TOP, Bench, Files, read_numbered
from penstock.kernels.cpu.jpeg.scan import (
    TALLEST,
    Memory,
    Scan,
    begin_strips,
    convert_strip,
    decode_strip,
    is_complete,
)
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.operators.image._rescale_normalize_cpu import sum_rows_to_planes

(
    _ROW_STARTS,
    _HEIGHT,
    _ROW_WEIGHTS,
    _ROW_TAPS,
    _ROW_BITS,
    _STARTS,
    _WIDTH,
    _WEIGHTS,
    _TAPS,
    _BITS,
    _FACTORS,
    _FACTORS_OF_A_CHANNEL,
) = range(12)
"""The columns of a resizing's parameters: addresses of arrays, and their extents."""
_CHANNELS = 3
_BYTE = np.dtype(np.uint8)
_ROWS = 128
"""Number of rows whose columns are resized at once, few enough for the cache; the last strip may have a few more."""
_MAX_ROWS = _ROWS + BLOCK + 2 * TALLEST

_pixels, _between = ThreadBuffers(), ThreadBuffers()


def columns_of(
    vertical: tuple[np.ndarray, np.ndarray, int],
    horizontal: tuple[np.ndarray, np.ndarray, int],
    factors: np.ndarray,
) -> np.ndarray | None:
    """Return the parameters of :func:`decode_and_resample` for a resizing, int64; keep the arrays alive. None if unsupported.

    Args:
        vertical, horizontal: starts, weights and bits of the filters.
        factors: of the values.
    """
    row: list[int] = []
    for starts, weights, bits in (vertical, horizontal):
        if not all(array.flags.c_contiguous and array.dtype == np.int32 for array in (starts, weights)):
            return None
        row += [starts.ctypes.data, len(starts), weights.ctypes.data, weights.shape[1], bits]
    if not factors.flags.c_contiguous or factors.dtype != np.float32:
        return None
    return np.array([*row, factors.ctypes.data, factors.shape[1]], np.int64)


def decode_and_resample(
    files: Files, most_scans: int, resizings: np.ndarray, taken: np.ndarray, decoded: np.ndarray, bench: Bench
) -> None:
    """Decode files that no other thread has taken, resize and store them, until none is left.

    Args:
        files, most_scans, taken, decoded, bench: as for ``decode_files`` of ``kernels/cpu/jpeg/files.py``; targets are those
            of the values, float32.
        resizings: the results of :func:`columns_of`, in rows.
    """
    rows, columns = files.regions[:, ROWS], files.regions[:, COLUMNS]
    pixels = _pixels.array((_CHANNELS * _MAX_ROWS * int(columns.max()),), _BYTE)
    between = _between.array((_CHANNELS * int((rows * resizings[:, _WIDTH]).max()),), _BYTE)
    _decode_and_resample(files, most_scans, resizings, taken, decoded, bench, pixels, between)


@kernel
def _decode_and_resample(
    files: Files,
    most_scans: int,
    resizings: np.ndarray,
    taken: np.ndarray,
    decoded: np.ndarray,
    bench: Bench,
    pixels: np.ndarray,
    between: np.ndarray,
) -> None:
    turn = counted(taken)
    while turn < files.order.size:
        number = files.order[turn]
        supported, scan = read_numbered(files, number, most_scans, bench)
        region, resizing = files.regions[number], resizings[number]
        line = _CHANNELS * resizing[_WIDTH]
        lines = between[: region[ROWS] * line].reshape((region[ROWS], line))
        if supported and _decode_and_resample_columns(scan, bench.memory, region, resizing, pixels, lines):
            _resample_rows(lines, region, resizing, files.targets[number])
            decoded[number] = True
        turn = counted(taken)


@inner
def _decode_and_resample_columns(
    scan: Scan, memory: Memory, region: np.ndarray, resizing: np.ndarray, pixels: np.ndarray, lines: np.ndarray
) -> bool:
    """Decode a region in strips of rows, and resize each strip's columns before the next one overwrites it.

    Args:
        pixels: of these rows: overwritten.
        lines: receives the region with its columns resized.
    """
    width, rows, columns = resizing[_WIDTH], region[ROWS], region[COLUMNS]
    starts = _numbers(resizing[_STARTS], 1, width).reshape(width) - np.int32(region[LEFT])
    weights = _numbers(resizing[_WEIGHTS], width, resizing[_TAPS])
    image = pixels[: _MAX_ROWS * columns * _CHANNELS].reshape((_MAX_ROWS, columns * _CHANNELS))
    strips, resized, done = begin_strips(scan, memory, region[TOP], region[LEFT], rows, columns, _CHANNELS), 0, 0
    for row in range(strips.begin, strips.last + 1):
        if not decode_strip(scan, memory, strips, row):
            return False
        done = convert_strip(scan, memory, strips, row, done, image.reshape(-1), resized, False)
        # Enough rows must remain for the next strip.
        if done == rows or resized + _ROWS <= done <= rows - BLOCK:
            sum_columns(image[: done - resized], _CHANNELS, starts, weights, resizing[_BITS], lines[resized:done])
            resized = done
    return is_complete(scan, memory, strips)


@inner
def _resample_rows(lines: np.ndarray, region: np.ndarray, resizing: np.ndarray, target: np.int64) -> None:
    height, width = resizing[_HEIGHT], resizing[_WIDTH]
    values = carray(bytes_from(target), (4 * _CHANNELS * height * width,)).view(np.float32)
    sum_rows_to_planes(
        lines,
        _numbers(resizing[_ROW_STARTS], 1, height).reshape(height) - np.int32(region[TOP]),
        _numbers(resizing[_ROW_WEIGHTS], height, resizing[_ROW_TAPS]),
        resizing[_ROW_BITS],
        _numbers(resizing[_FACTORS], _CHANNELS, resizing[_FACTORS_OF_A_CHANNEL]).view(np.float32),
        values.reshape((_CHANNELS, height, width)),
    )


@inner
def _numbers(place: np.int64, rows: int, columns: int) -> np.ndarray:
    """Return the int32 of shape (rows, columns) at an address."""
    return carray(bytes_from(place), (4 * rows * columns,)).view(np.int32).reshape((rows, columns))
