"""Decode, resize and normalize the JPEGs of a batch while their pixels are in the cache, in one compiled call per thread."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.fixed_point import BLOCK, sum_columns
from penstock.kernels.cpu.jpeg.files import COLUMNS, LEFT, ROWS, TOP, Bench, Files, read_numbered
from penstock.kernels.cpu.jpeg.scan import (
    MAX_UNIT_ROWS,
    Memory,
    Scan,
    begin_strips,
    convert_strip,
    decode_strip,
    is_complete,
)
from penstock.kernels.cpu.memory import counted
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import elements_at
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.operators.image._rescale_normalize_cpu import sum_rows_to_planes

RESIZING = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("row_starts", "height", "row_weights", "row_taps", "row_bits"),
            *("starts", "width", "weights", "taps", "bits"),
            *("factors", "factors_of_a_channel"),
        )
    ]
)
"""How to resize one image. For each axis: the address of the first input position of each filter, the number of filters, the address of
the weights, the number of weights per filter, and the weights' fractional bits. Then the address of the normalization factors, and the
number of factors per channel."""
_CHANNELS = 3
_BYTE = np.dtype(np.uint8)
_ROWS = 128
"""Number of decoded rows from which on a strip is resized horizontally, few enough for the cache; the last strip may have fewer."""
_MAX_ROWS = _ROWS + BLOCK + 2 * MAX_UNIT_ROWS

_pixels, _between = ThreadBuffers(), ThreadBuffers()


def columns_of(
    vertical: tuple[np.ndarray, np.ndarray, int],
    horizontal: tuple[np.ndarray, np.ndarray, int],
    factors: np.ndarray,
) -> np.ndarray | None:
    """Return a :data:`RESIZING` record with the addresses of these arrays; None if their types or strides are not supported.

    The caller must keep the arrays alive.

    Args:
        vertical, horizontal: starts, weights and bits of an axis's filters.
        factors: the factors of the normalization.
    """
    row: list[int] = []
    for starts, weights, bits in (vertical, horizontal):
        if not all(array.flags.c_contiguous and array.dtype == np.int32 for array in (starts, weights)):
            return None
        row += [starts.ctypes.data, len(starts), weights.ctypes.data, weights.shape[1], bits]
    if not factors.flags.c_contiguous or factors.dtype != np.float32:
        return None
    return np.array([(*row, factors.ctypes.data, factors.shape[1])], RESIZING)


def decode_and_resample(
    files: Files, most_scans: int, resizings: np.ndarray, taken: np.ndarray, decoded: np.ndarray, bench: Bench
) -> None:
    """Decode files that no other thread has taken, resize and store them, until none are left.

    Args:
        files, most_scans, taken, decoded, bench: as for ``decode_files`` of ``kernels/cpu/jpeg/files.py``;
            ``files.targets`` are the addresses of the results, float32.
        resizings: a :data:`RESIZING` record for each file.
    """
    rows, columns = files.regions[:, ROWS], files.regions[:, COLUMNS]
    pixels = _pixels.array((_CHANNELS * _MAX_ROWS * int(columns.max()),), _BYTE)
    between = _between.array((_CHANNELS * int((rows * resizings["width"]).max()),), _BYTE)
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
        line = _CHANNELS * resizing.width
        lines = between[: region[ROWS] * line].reshape((region[ROWS], line))
        if supported and _decode_and_resample_columns(scan, bench.memory, region, resizing, pixels, lines):
            _resample_rows(lines, region, resizing, files.targets[number])
            decoded[number] = True
        turn = counted(taken)


@inner
def _decode_and_resample_columns(
    scan: Scan, memory: Memory, region: np.ndarray, resizing: np.record, pixels: np.ndarray, lines: np.ndarray
) -> bool:
    """Decode a region in strips of rows, and resize each strip horizontally before the next one overwrites it.

    Returns whether the region was decoded completely.

    Args:
        pixels: memory for the pixels of a strip, reused for each strip.
        lines: receives the horizontally resized region.
    """
    width, rows, columns = resizing.width, region[ROWS], region[COLUMNS]
    starts = _numbers(resizing.starts, 1, width).reshape(width) - np.int32(region[LEFT])
    weights = _numbers(resizing.weights, width, resizing.taps)
    image = pixels[: _MAX_ROWS * columns * _CHANNELS].reshape((_MAX_ROWS, columns * _CHANNELS))
    strips = begin_strips(scan, memory, region[TOP], region[LEFT], rows, columns, _CHANNELS, True)
    resized, done = 0, 0
    for row in range(strips.begin, strips.last + 1):
        if not decode_strip(scan, memory, strips, row):
            return False
        done = convert_strip(scan, memory, strips, row, done, image.reshape(-1), resized, False)
        # `sum_columns` needs at least BLOCK rows, so leave that many for the last strip.
        if done == rows or resized + _ROWS <= done <= rows - BLOCK:
            sum_columns(image[: done - resized], _CHANNELS, starts, weights, resizing.bits, lines[resized:done])
            resized = done
    return is_complete(scan, memory, strips)


@inner
def _resample_rows(lines: np.ndarray, region: np.ndarray, resizing: np.record, target: np.int64) -> None:
    height, width = resizing.height, resizing.width
    values = elements_at(target, _CHANNELS * height * width, np.float32(0))
    sum_rows_to_planes(
        lines,
        _numbers(resizing.row_starts, 1, height).reshape(height) - np.int32(region[TOP]),
        _numbers(resizing.row_weights, height, resizing.row_taps),
        resizing.row_bits,
        _numbers(resizing.factors, _CHANNELS, resizing.factors_of_a_channel).view(np.float32),
        values.reshape((_CHANNELS, height, width)),
    )


@inner
def _numbers(address: np.int64, rows: int, columns: int) -> np.ndarray:
    """Return the int32 array of shape (rows, columns) at an address."""
    return elements_at(address, rows * columns, np.int32(0)).reshape((rows, columns))
