"""Decodes the JPEGs of a batch, and resizes and stores each while it is in the cache: one compiled call for a thread."""

from __future__ import annotations

import numpy as np
from numba import carray

from penstock.kernels.cpu.foreign import bytes_from, counted
from penstock.kernels.cpu.jpeg.files import COLUMNS, LEFT, ROWS, TOP, Bench, Files, decode_numbered
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.operators.image._rescale_normalize_cpu import resample_to_planes

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
    _ROWS_READ,
) = range(13)
"""The columns of what is told of a resizing: addresses of arrays, and their extents."""
_CHANNELS = 3
_BYTE = np.dtype(np.uint8)

_pixels, _between = ThreadBuffers(), ThreadBuffers()


def columns_of(
    vertical: tuple[np.ndarray, np.ndarray, int],
    horizontal: tuple[np.ndarray, np.ndarray, int],
    factors: np.ndarray,
    rows_read: int,
) -> np.ndarray | None:
    """What :func:`decode_and_resample` is told of a resizing, int64; the arrays must be kept. None if it takes other ones.

    Args:
        vertical, horizontal: starts, weights and bits of the filters.
        factors: of the values.
        rows_read: how many rows of the image are needed.
    """
    told: list[int] = []
    for starts, weights, bits in (vertical, horizontal):
        if not all(array.flags.c_contiguous and array.dtype == np.int32 for array in (starts, weights)):
            return None
        told += [starts.ctypes.data, len(starts), weights.ctypes.data, weights.shape[1], bits]
    if not factors.flags.c_contiguous or factors.dtype != np.float32:
        return None
    return np.array([*told, factors.ctypes.data, factors.shape[1], rows_read], np.int64)


def decode_and_resample(
    files: Files, most_scans: int, resizings: np.ndarray, taken: np.ndarray, decoded: np.ndarray, bench: Bench
) -> None:
    """Decodes files that no other thread has taken, and resizes and stores them, until none is left.

    Args:
        files, most_scans, taken, decoded, bench: as for ``decode_files`` of ``kernels/cpu/jpeg/files.py``; targets are those
            of the values, float32.
        resizings: what :func:`columns_of` tells of each, in rows.
    """
    pixels = _pixels.array((_CHANNELS * int((files.regions[:, ROWS] * files.regions[:, COLUMNS]).max()),), _BYTE)
    between = _between.array((_CHANNELS * int((resizings[:, _ROWS_READ] * resizings[:, _WIDTH]).max()),), _BYTE)
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
        region = files.regions[number]
        size = _CHANNELS * region[ROWS] * region[COLUMNS]
        image = pixels[:size].reshape((region[ROWS], region[COLUMNS], _CHANNELS))
        decoded[number] = decode_numbered(files, number, image, False, most_scans, bench)
        if decoded[number]:
            _resample(image, region, resizings[number], between, files.targets[number])
        turn = counted(taken)


@inner
def _resample(
    image: np.ndarray, region: np.ndarray, resizing: np.ndarray, between: np.ndarray, target: np.int64
) -> None:
    height, width = resizing[_HEIGHT], resizing[_WIDTH]
    rows_read, line = resizing[_ROWS_READ], _CHANNELS * width
    values = carray(bytes_from(target), (4 * _CHANNELS * height * width,)).view(np.float32)
    numbers = _numbers(resizing[_FACTORS], _CHANNELS, resizing[_FACTORS_OF_A_CHANNEL]).view(np.float32)
    resample_to_planes(
        image,
        _numbers(resizing[_ROW_STARTS], 1, height).reshape(height) - np.int32(region[TOP]),
        _numbers(resizing[_ROW_WEIGHTS], height, resizing[_ROW_TAPS]),
        resizing[_ROW_BITS],
        _numbers(resizing[_STARTS], 1, width).reshape(width) - np.int32(region[LEFT]),
        _numbers(resizing[_WEIGHTS], width, resizing[_TAPS]),
        resizing[_BITS],
        numbers,
        between[: rows_read * line].reshape((rows_read, line)),
        values.reshape((_CHANNELS, height, width)),
    )


@inner
def _numbers(place: np.int64, rows: int, columns: int) -> np.ndarray:
    """The int32 of shape (rows, columns) at an address."""
    return carray(bytes_from(place), (4 * rows * columns,)).view(np.int32).reshape((rows, columns))
