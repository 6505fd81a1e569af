"""Decode, resize and normalize the JPEGs of a batch while their pixels are in the cache, in one compiled call per thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.core.arrays import address
from penstock.kernels.cpu import signatures
from penstock.kernels.cpu.fixed_point import BLOCK, sum_columns
from penstock.kernels.cpu.jpeg.files import COLUMNS, LEFT, ROWS, TOP, Files, Scratch, decode_files
from penstock.kernels.cpu.jpeg.scan import MAX_UNIT_ROWS, Consumer
from penstock.kernels.cpu.options import cfunc, inner
from penstock.kernels.cpu.parts import bytes_at, elements_at, record_at
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
_IMAGE = np.dtype(
    [("resizing", RESIZING), ("target", np.int64), *((name, np.int64) for name in ("top", "left", "rows", "columns"))]
)
"""An image: how to resize it, the address of the result, float32, and the region of the image to resize."""
_THREAD = np.dtype([(name, np.int64) for name in ("images", "image_count", "pixels", "lines")])
"""A thread's work: the address and number of the batch's ``_IMAGE`` records, and the addresses of memory for decoded rows of an image,
and for the horizontally resized region."""
_CHANNELS = 3
_BYTE = np.dtype(np.uint8)
_ROWS = 128
"""The minimum number of decoded rows that are resized horizontally at a time, few enough for the cache; `sum_columns` needs ``BLOCK``."""
_MAX_ROWS = _ROWS + BLOCK + 2 * MAX_UNIT_ROWS

_pixels, _lines = ThreadBuffers(), ThreadBuffers()


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
    files: Files, most_scans: int, resizings: np.ndarray, taken: np.ndarray, decoded: np.ndarray, scratch: Scratch
) -> None:
    """Decode files that no other thread has taken, resize and store them, until none are left.

    Args:
        files, most_scans, taken, decoded, scratch: as for ``decode_files`` of ``kernels/cpu/jpeg/files.py``;
            ``files.targets`` are the addresses of the results, float32.
        resizings: a :data:`RESIZING` record for each file.
    """
    images = np.empty(len(resizings), _IMAGE)
    images["resizing"], images["target"] = resizings, files.targets
    for name, column in (("top", TOP), ("left", LEFT), ("rows", ROWS), ("columns", COLUMNS)):
        images[name] = files.regions[:, column]
    pixels = _pixels.array((_CHANNELS * _MAX_ROWS * int(images["columns"].max()),), _BYTE)
    lines = _lines.array((_CHANNELS * int((images["rows"] * resizings["width"]).max()),), _BYTE)
    thread = np.array((address(images), len(images), address(pixels), address(lines)), _THREAD)
    consumer = Consumer(_resize_rows.address, address(thread), _ROWS, BLOCK)
    decode_files(files, _CHANNELS, False, True, most_scans, consumer, pixels, taken, decoded, scratch)


@cfunc(f"{signatures.pointer_to(_THREAD)}, int64, int64, int64", "int32")
def _resize_rows(thread: Any, number: int, first: int, end: int) -> int:
    """Resize decoded rows of an image horizontally; after the last ones, resize the image vertically and store it. Return 0."""
    work = record_at(thread)
    image = elements_at(work.images, work.image_count, _IMAGE)[number]
    line = _CHANNELS * image.resizing.width
    lines = bytes_at(work.lines, image.rows * line).reshape((image.rows, line))
    pixels = bytes_at(work.pixels, (end - first) * image.columns * _CHANNELS)
    _resize_columns(image, pixels.reshape((end - first, image.columns * _CHANNELS)), lines[first:end])
    if end == image.rows:
        _resize_and_store(image, lines)
    return 0


@inner
def _resize_columns(image: np.record, pixels: np.ndarray, lines: np.ndarray) -> None:
    resizing = image.resizing
    starts = _numbers(resizing.starts, 1, resizing.width).reshape(resizing.width) - np.int32(image.left)
    weights = _numbers(resizing.weights, resizing.width, resizing.taps)
    sum_columns(pixels, _CHANNELS, starts, weights, resizing.bits, lines)


@inner
def _resize_and_store(image: np.record, lines: np.ndarray) -> None:
    resizing = image.resizing
    height, width = resizing.height, resizing.width
    values = elements_at(image.target, _CHANNELS * height * width, np.float32(0))
    sum_rows_to_planes(
        lines,
        _numbers(resizing.row_starts, 1, height).reshape(height) - np.int32(image.top),
        _numbers(resizing.row_weights, height, resizing.row_taps),
        resizing.row_bits,
        _numbers(resizing.factors, _CHANNELS, resizing.factors_of_a_channel).view(np.float32),
        values.reshape((_CHANNELS, height, width)),
    )


@inner
def _numbers(address: np.int64, rows: int, columns: int) -> np.ndarray:
    """Return the int32 array of shape (rows, columns) at an address."""
    return elements_at(address, rows * columns, np.int32(0)).reshape((rows, columns))
