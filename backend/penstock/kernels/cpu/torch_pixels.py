"""Resampling of uint8 images after conversion of their pixels to float32 values, as in PyTorch, without antialiasing.

The float image is never in memory as a whole: for each row that is needed, values are computed and resampled along the row, once;
an output row is computed from two or four such rows. Sums have the same order as in ``kernels/cpu/torch_floats.py``.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.pixel_values import LANES, is_written_past_cache, spread_factors, store_values
from penstock.kernels.cpu.simd import at, fence, fused, load, load_pixels, pointer, rounded, store
from penstock.kernels.cpu.torch_floats import neighbour_taps

LEAST = LANES
"""The minimum width of images, before and after resampling."""
_NO_PLANES, _NO_PIXELS = np.empty((0, 0, 0), np.float32), np.empty((0, 0, 0), np.uint8)
_AS_THEY_ARE = np.array([[1, 0, 1, 0]] * 3, np.float32)
# The number of values after which factors repeat: the values of ``LANES`` pixels of three channels.
_PERIOD = 3 * LANES
# The number of values that are loaded and stored for each pixel of three channels; the next pixel overwrites the fourth value.
_PIXEL = 4
# Adding this number and subtracting it again rounds to an integer, because from this number on, float32 has no fractions.
_ROUNDER = np.float32(1 << 23)


@inner
def _compute_values(
    pixels: types.CPointer, start: int, size: int, spread: types.CPointer, divides: bool, line: types.CPointer
) -> None:
    """Compute the values of a row of ``size`` bytes, in the order of the bytes."""
    x = 0
    while x < size:
        # The last vectors overlap the previous ones, so that all vectors have the same size.
        x = min(x, size - _PERIOD)
        for k in range(0, _PERIOD, LANES):
            values = load(pixels, start + x + k, LANES) * load(spread, k, LANES)
            if divides:
                values = (values - load(spread, k + _PERIOD, LANES)) / load(spread, k + 2 * _PERIOD, LANES)
            store(line, x + k, values)
        x += _PERIOD


@inner
def _take_neighbours(
    line: types.CPointer, columns: types.CPointer, width: int, held: types.CPointer, place: int, stride: int
) -> None:
    """Copy the two neighbours of each column: the first ones to a row at ``place``, the second ones to a row ``stride`` further on."""
    for x in range(width):
        store(held, place, load(line, at(columns, 2 * x), _PIXEL))
        store(held, place + stride, load(line, at(columns, 2 * x + 1), _PIXEL))
        place += 3


@inner
def _sum_neighbours(
    line: types.CPointer,
    columns: types.CPointer,
    weights: types.CPointer,
    width: int,
    taps: int,
    held: types.CPointer,
    place: int,
) -> None:
    """Compute the weighted sum of each column's two or four neighbours; it begins with the product of the second neighbour."""
    for first in range(0, width * taps, taps):
        total = load(line, at(columns, first + 1), _PIXEL) * at(weights, first + 1)
        total = fused(load(line, at(columns, first), _PIXEL), at(weights, first), total)
        for k in range(first + 2, first + taps):
            total = fused(load(line, at(columns, k), _PIXEL), at(weights, k), total)
        store(held, place, total)
        place += 3


@inner
def _mix_at_once(
    held: types.CPointer,
    first: int,
    second: int,
    stride: int,
    above: np.float32,
    below: np.float32,
    weights: types.CPointer,
    line: types.CPointer,
) -> None:
    """Interpolate between the neighbours in the rows at ``first`` and ``second``, with products of both axes' weights."""
    for x in range(0, stride, LANES):
        left, right = load(weights, x, LANES), load(weights, stride + x, LANES)
        total = load(held, first + stride + x, LANES) * (right * above)
        total = fused(load(held, first + x, LANES), left * above, total)
        total = fused(load(held, second + x, LANES), left * below, total)
        total = fused(load(held, second + stride + x, LANES), right * below, total)
        store(line, x, total)


@inner
def _mix(held: types.CPointer, places: np.ndarray, weights: np.ndarray, stride: int, line: types.CPointer) -> None:
    """Compute the weighted sum of the two or four rows at ``places``."""
    for x in range(0, stride, LANES):
        total = load(held, places[1] + x, LANES) * weights[1]
        total = fused(load(held, places[0] + x, LANES), weights[0], total)
        for k in range(2, len(weights)):
            total = fused(load(held, places[k] + x, LANES), weights[k], total)
        store(line, x, total)


@inner
def _store_planes(
    line: types.CPointer, width: int, target: types.CPointer, place: int, stride: int, past_cache: bool
) -> None:
    """Store a row of pixels as one row in each of three planes, which are ``stride`` elements apart."""
    x = 0
    while x < width:
        x = min(x, width - LANES)
        red, green, blue = load_pixels(line, 3 * x, LANES, 3, False)
        store_values(target, place + x, red, past_cache)
        store_values(target, place + stride + x, green, past_cache)
        store_values(target, place + 2 * stride + x, blue, past_cache)
        x += LANES


@inner
def _store_rounded(line: types.CPointer, size: int, target: types.CPointer, place: int) -> None:
    """Store a row of ``size`` numbers as bytes, rounded half to even."""
    x = 0
    while x < size:
        x = min(x, size - LANES)
        whole = load(line, x, LANES) + _ROUNDER - _ROUNDER
        store(target, place + x, rounded(whole, np.uint8(0)))
        x += LANES


@inner
def _prepare_rows(
    image: np.ndarray,
    spread: np.ndarray,
    divides: bool,
    wanted: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    at_once: bool,
    line: np.ndarray,
    held: np.ndarray,
    known: np.ndarray,
) -> None:
    """Compute and resample along the row the values of each row in ``wanted``, except those that ``held`` contains already.

    Row ``r`` is stored in ``held[r % len(held)]``; ``known`` are the numbers of the rows in ``held``.
    """
    width = 3 * image.shape[1]
    taps, stride, places = columns.shape[1], held.shape[1] // (2 if at_once else 1), pointer(columns.reshape(-1))
    for row in wanted:
        slot = row % len(held)
        if known[slot] == row:
            continue
        known[slot] = row
        _compute_values(pointer(image.reshape(-1)), row * width, width, pointer(spread), divides, pointer(line))
        place = slot * held.shape[1]
        if at_once:
            _take_neighbours(pointer(line), places, len(columns), pointer(held.reshape(-1)), place, stride)
        else:
            _sum_neighbours(
                pointer(line),
                places,
                pointer(weights.reshape(-1)),
                len(columns),
                taps,
                pointer(held.reshape(-1)),
                place,
            )


@kernel
def _resample(
    image: np.ndarray,
    factors: np.ndarray,
    rows: np.ndarray,
    row_weights: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    at_once: bool,
    planes: np.ndarray,
    pixels: np.ndarray,
) -> None:
    """Resample the values of an image, and store the results as planes or, rounded, as pixels.

    Args:
        image: uint8 of shape (H, W, 3), contiguous, at least ``LEAST`` wide.
        factors: the factors with which values are computed; none of these may be rounded to bfloat16. See
            ``_normalizing.factors_of``.
        rows, row_weights, columns, weights: the neighbours of each row and column, and their weights.
        at_once: whether four neighbours are summed at once, with products of weights, instead of along one axis after the other.
        planes: filled with the results; float32 of shape (3, h, w), contiguous; or empty, of shape (0, 0, 0).
        pixels: filled with rounded results; uint8 of shape (h, w, 3), contiguous; or empty, of shape (0, 0, 0).
    """
    taps, width, size = rows.shape[1], len(columns), 3 * len(columns)
    # Rows are padded, because vectors may extend beyond their ends.
    stride = (size + LANES) // LANES * LANES
    held = np.zeros((taps, stride * (2 if at_once else 1)), np.float32)
    known = np.full(taps, -1, np.int64)
    line = np.zeros(max(3 * image.shape[1], stride) + _PERIOD, np.float32)
    products = np.zeros(2 * stride, np.float32)
    for k in range(size if at_once else 0):
        products[k], products[stride + k] = weights[k // 3, 0], weights[k // 3, 1]
    spread, places, begins = spread_factors(factors, LANES), np.empty(taps, np.int64), 3 * columns
    divides = False
    for k in range(3):
        divides |= factors[k, 1] != 0 or factors[k, 2] != 1
    above, sums, results, area = (
        pointer(held.reshape(-1)),
        pointer(line),
        pointer(planes.reshape(-1)),
        len(rows) * width,
    )
    past_cache = is_written_past_cache(planes, width, area)
    for y in range(len(rows)):
        _prepare_rows(image, spread, divides, rows[y], begins, weights, at_once, line, held, known)
        for k in range(taps):
            places[k] = rows[y, k] % taps * held.shape[1]
        if at_once:
            first, second = places[0], places[1]
            _mix_at_once(above, first, second, stride, row_weights[y, 0], row_weights[y, 1], pointer(products), sums)
        else:
            _mix(above, places, row_weights[y], stride, sums)
        if planes.size:
            _store_planes(sums, width, results, y * width, area, past_cache)
        else:
            _store_rounded(sums, size, pointer(pixels.reshape(-1)), y * size)
    fence()


def resample_to_planes(image: np.ndarray, factors: np.ndarray, cubic: bool, planes: np.ndarray) -> None:
    """Resample the values of an image (H, W, 3) to planes (3, h, w) of float32; both arrays are contiguous."""
    rows, columns = (neighbour_taps(*extents, cubic) for extents in zip(image.shape[:2], planes.shape[1:]))
    _resample(image, factors, *rows, *columns, not cubic, planes, _NO_PIXELS)


def resample_rounded(image: np.ndarray, cubic: bool, pixels: np.ndarray) -> None:
    """Resample an image (H, W, 3) in float32, and round the results to uint8 (h, w, 3); both arrays are contiguous."""
    rows, columns = (neighbour_taps(*extents, cubic) for extents in zip(image.shape[:2], pixels.shape[:2]))
    _resample(image, _AS_THEY_ARE, *rows, *columns, not cubic, _NO_PLANES, pixels)
