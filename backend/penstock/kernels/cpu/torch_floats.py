"""Resampling of float32 with the rounding of PyTorch's kernels on machines with FMA.

The compiler that built PyTorch chose the order of operations, and which of them are fused; both were determined by comparing
results.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import at, fused, load, pointer, store, turn_floats
from penstock.kernels.cpu.simd_integers import put
from penstock.kernels.reference_filters import TORCH_SMALL

# The maximum number of cached tables: images often have the same sizes, and each image looks up two tables for each channel.
_TABLES = 64
_ONE, _HALF = np.float32(1.0), np.float32(0.5)


@inner
def _near(x: np.float32, a: np.float32) -> np.float32:
    """Return the value of the cubic convolution kernel at a distance of up to one."""
    return fused(a + np.float32(2.0), x, -(a + np.float32(3.0))) * x * x + _ONE


@inner
def _widened_filter(x: np.float32, cubic: bool) -> np.float32:
    x = abs(x)
    if not cubic:
        return np.float32(1.0 - np.float64(x)) if x < _ONE else np.float32(0.0)
    a = np.float32(-0.5)
    if x < _ONE:
        return fused(fused(a + np.float32(2.0), x, -(a + np.float32(3.0))) * x, x, _ONE)
    if x < np.float32(2.0):
        rest = fused(fused(a, x, np.float32(2.5)), x, np.float32(-4.0))
        return fused(rest, x, np.float32(2.0))
    return np.float32(0.0)


@kernel
def widened_taps(size: int, outputs: int, cubic: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first tap, the number of taps, and the weights of each output, with antialiasing."""
    scale = np.float32(np.float32(size) / np.float32(outputs))
    half = 2.0 if cubic else 1.0
    reach = np.float32(half * np.float64(scale)) if scale >= _ONE else np.float32(half)
    inverse = np.float32(1.0 / np.float64(scale)) if scale >= _ONE else _ONE
    starts, counts = np.empty(outputs, np.int64), np.empty(outputs, np.int64)
    weights = np.zeros((outputs, math.ceil(reach) * 2 + 1), np.float32)
    for i in range(outputs):
        centre = np.float32(np.float64(scale) * (i + 0.5))
        first = max(int(np.float64(np.float32(centre - reach)) + 0.5), 0)
        count = min(int(np.float64(np.float32(centre + reach)) + 0.5), size) - first
        count = min(max(count, 0), weights.shape[1])
        total = np.float32(0.0)
        for k in range(count):
            distance = np.float32(np.float32(first + k) - centre)
            weight = _widened_filter(np.float32((np.float64(distance) + 0.5) * np.float64(inverse)), cubic)
            weights[i, k] = weight
            total += weight
        if total != np.float32(0.0):
            for k in range(count):
                weights[i, k] /= total
        starts[i], counts[i] = first, count
    return starts, counts, weights


@kernel
def neighbour_taps(size: int, outputs: int, cubic: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and the weights of the two or four neighbours of each output, without antialiasing."""
    count = 4 if cubic else 2
    scale = np.float32(np.float32(size) / np.float32(outputs))
    positions, weights = np.empty((outputs, count), np.int64), np.empty((outputs, count), np.float32)
    a = np.float32(-0.75)
    for i in range(outputs):
        place = fused(scale, np.float32(i) + _HALF, -_HALF)
        if not cubic:
            place = max(place, np.float32(0.0))
            if size == outputs:
                place = np.float32(i)
        below = min(math.floor(place), size - 1)
        rest = min(max(np.float32(place - np.float32(below)), np.float32(0.0)), _ONE)
        if cubic:
            other = np.float32(1.0 - np.float64(rest))
            for k in range(2):
                x = _ONE + (rest if k == 0 else other)
                far = fused(fused(a, x, np.float32(3.75)), x, np.float32(-6.0)) * x + np.float32(3.0)
                weights[i, 3 * k] = far
            weights[i, 1], weights[i, 2] = _near(rest, a), _near(other, a)
            for k in range(4):
                positions[i, k] = min(max(below - 1 + k, 0), size - 1)
        else:
            positions[i, 0], positions[i, 1] = below, min(below + 1, size - 1)
            weights[i, 0], weights[i, 1] = _ONE - rest, rest
    return positions, weights


@inner
def _sum_widened(
    flat: types.CPointer, place: int, step: int, weights: types.CPointer, first: int, count: int
) -> np.float32:
    """Sum weighted taps: after the first tap, whole groups of four are multiplied and then added; the rest is added with fused
    multiply-add.
    """
    total = at(flat, place) * at(weights, first)
    apart = 1 + (count - 1) // 4 * 4
    for k in range(1, apart):
        place += step
        total = total + at(flat, place) * at(weights, first + k)
    for k in range(apart, count):
        place += step
        total = fused(at(flat, place), at(weights, first + k), total)
    return total


# The number of adjacent values that are summed at a time, and of rows that are transposed so that their values are adjacent.
_LANES = 16


@inner
def _sum_lanes(
    flat: types.CPointer,
    place: int,
    step: int,
    weights: types.CPointer,
    first: int,
    count: int,
    target: types.CPointer,
    end: int,
) -> None:
    """Same as :func:`_sum_widened`, for ``_LANES`` adjacent values."""
    total = load(flat, place, _LANES) * at(weights, first)
    apart = 1 + (count - 1) // 4 * 4
    for k in range(1, apart):
        place += step
        total = total + load(flat, place, _LANES) * at(weights, first + k)
    for k in range(apart, count):
        place += step
        total = fused(load(flat, place, _LANES), at(weights, first + k), total)
    store(target, end, total)


@inner
def _sum_rows(
    flat: types.CPointer,
    place: int,
    starts: np.ndarray,
    counts: np.ndarray,
    weights: np.ndarray,
    inner: int,
    target: types.CPointer,
    end: int,
) -> None:
    """Resample the first axis of an array (n, inner) at ``place`` of ``flat`` to (m, inner) at ``end`` of ``target``."""
    table, taps = pointer(weights.ravel()), weights.shape[1]
    for i in range(starts.size):
        begin, first, count = place + starts[i] * inner, i * taps, counts[i]
        whole = inner if inner >= _LANES else 0
        x = 0
        while x < whole:
            # The last vector overlaps the previous one, so that all vectors have the same size.
            x = min(x, inner - _LANES)
            _sum_lanes(flat, begin + x, inner, table, first, count, target, end + x)
            x += _LANES
        for x in range(whole, inner):
            put(target, end + x, _sum_widened(flat, begin + x, inner, table, first, count))
        end += inner


@inner
def _turn(
    source: types.CPointer,
    place: int,
    stride: int,
    rows: int,
    columns: int,
    target: types.CPointer,
    end: int,
    spacing: int,
) -> None:
    """Transpose a matrix (rows, columns). Its rows begin at ``place`` and are ``stride`` elements apart; those of the result begin at
    ``end`` and are ``spacing`` apart.
    """
    whole, y = rows if min(rows, columns) >= 8 else 0, 0
    while y < whole:
        y, x = min(y, rows - 8), 0
        while x < columns:
            x = min(x, columns - 8)
            turn_floats(source, place + y * stride + x, stride, target, end + x * spacing + y, spacing)
            x += 8
        y += 8
    for y in range(whole, rows):
        for x in range(columns):
            put(target, end + x * spacing + y, at(source, place + y * stride + x))


@kernel
def resample_widened(
    source: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    weights: np.ndarray,
    scratch: np.ndarray,
    target: np.ndarray,
) -> None:
    """Resample the middle axis of source (outer, n, inner) to target (outer, m, inner).

    Args:
        scratch: float32 of shape (_LANES * (n + m) * inner,); used only if ``inner`` is less than ``_LANES``.
    """
    # Pointers instead of arrays, because numba would count references to arrays in each call.
    flat, ends, columns = pointer(source.ravel()), pointer(target.ravel()), pointer(scratch)
    outer, size, inner = source.shape
    width, turned_width = size * inner, starts.size * inner
    if inner >= _LANES:
        for o in range(outer):
            _sum_rows(flat, o * width, starts, counts, weights, inner, ends, o * turned_width)
        return
    # Rows are transposed, so that a vector contains one value of each row.
    sums, table, taps = width * _LANES, pointer(weights.ravel()), weights.shape[1]
    for first in range(0, outer, _LANES):
        rows = min(outer - first, _LANES)
        _turn(flat, first * width, width, rows, width, columns, 0, _LANES)
        for i in range(starts.size):
            for c in range(inner):
                place, end = (starts[i] * inner + c) * _LANES, sums + (i * inner + c) * _LANES
                _sum_lanes(columns, place, inner * _LANES, table, i * taps, counts[i], columns, end)
        _turn(columns, sums, _LANES, turned_width, rows, ends, first * turned_width, turned_width)


@kernel
def resample_neighbours(source: np.ndarray, positions: np.ndarray, weights: np.ndarray, target: np.ndarray) -> None:
    """Same as :func:`resample_widened`, for weights from :func:`neighbour_taps`: a sum begins with the product of the second neighbour."""
    taps = positions.shape[1]
    for o in range(source.shape[0]):
        for i in range(len(positions)):
            for k in range(source.shape[2]):
                total = source[o, positions[i, 1], k] * weights[i, 1]
                total = fused(source[o, positions[i, 0], k], weights[i, 0], total)
                for tap in range(2, taps):
                    total = fused(source[o, positions[i, tap], k], weights[i, tap], total)
                target[o, i, k] = total


@kernel
def resample_four(
    source: np.ndarray,
    rows: np.ndarray,
    row_weights: np.ndarray,
    columns: np.ndarray,
    column_weights: np.ndarray,
    target: np.ndarray,
) -> None:
    """Resample both axes at once, from four neighbours with products of both axes' weights: source (H, W, C) to target (h, w, C)."""
    for y in range(len(rows)):
        for x in range(len(columns)):
            w = row_weights[y, 0] * column_weights[x, 0], row_weights[y, 0] * column_weights[x, 1]
            v = row_weights[y, 1] * column_weights[x, 0], row_weights[y, 1] * column_weights[x, 1]
            for c in range(source.shape[2]):
                total = source[rows[y, 0], columns[x, 1], c] * w[1]
                total = fused(source[rows[y, 0], columns[x, 0], c], w[0], total)
                total = fused(source[rows[y, 1], columns[x, 0], c], v[0], total)
                target[y, x, c] = fused(source[rows[y, 1], columns[x, 1], c], v[1], total)


@functools.lru_cache(_TABLES)
def _taps_of(size: int, outputs: int, cubic: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    taps: tuple[np.ndarray, np.ndarray, np.ndarray] = widened_taps(size, outputs, cubic)
    return taps


def resample_image(source: np.ndarray, target: np.ndarray, cubic: bool, antialias: bool, all_channels: int) -> None:
    """Resample a contiguous float32 image (H, W, C) to (h, w, C).

    ``all_channels``: the number of channels of the whole image, of which ``source`` may be a part.
    """
    height, width, channels = source.shape
    h, w = target.shape[:2]
    between = np.empty((height, w, channels), np.float32)
    if antialias:
        scratch = np.empty(_LANES * (width + w) * channels, np.float32)
        resample_widened(source, *_taps_of(width, w, cubic), scratch, between)
        lines, result = between.reshape(1, height, -1), target.reshape(1, h, -1)
        if lines.shape[2] < _LANES:
            scratch = np.empty(_LANES * (height + h) * lines.shape[2], np.float32)
        resample_widened(lines, *_taps_of(height, h, cubic), scratch, result)
        return
    rows, columns = neighbour_taps(height, h, cubic), neighbour_taps(width, w, cubic)
    if cubic:
        resample_neighbours(source, *columns, between)
        resample_neighbours(between.reshape(1, height, -1), *rows, target.reshape(1, h, -1))
    else:
        _interpolate(source, target, rows, columns, all_channels)


def interpolate_between_corners(source: np.ndarray, target: np.ndarray) -> None:
    """Resize a contiguous float32 image (H, W, C) to (h, w, C) with corners aligned: the outermost pixels stay
    outermost.
    """
    rows, columns = (_corner_taps(*sizes) for sizes in zip(source.shape[:2], target.shape[:2]))
    _interpolate(source, target, rows, columns, source.shape[2])


def _corner_taps(size: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and the weights of the two neighbours of each output, with corners aligned."""
    scale = np.float32((size - 1) / (outputs - 1)) if outputs > 1 else np.float32(0.0)
    places = np.arange(outputs, dtype=np.float32) * (_ONE if size == outputs else scale)
    below = np.minimum(np.floor(places).astype(np.int64), size - 1)
    rest = np.clip(places - below.astype(np.float32), np.float32(0.0), _ONE)
    return np.stack([below, np.minimum(below + 1, size - 1)], axis=1), np.stack([_ONE - rest, rest], axis=1)


def _interpolate(
    source: np.ndarray,
    target: np.ndarray,
    rows: tuple[np.ndarray, np.ndarray],
    columns: tuple[np.ndarray, np.ndarray],
    all_channels: int,
) -> None:
    """Interpolate between two neighbours along each axis; ``rows``, ``columns``: their positions and weights."""
    height, _, channels = source.shape
    h, w = target.shape[:2]
    # Small images, and those with three channels, are interpolated along both axes in one step.
    if all_channels == 3 or h + w <= TORCH_SMALL:
        resample_four(source, *rows, *columns, target)
        return
    between = np.empty((height, w, channels), np.float32)
    resample_neighbours(source, *columns, between)
    resample_neighbours(between.reshape(1, height, -1), *rows, target.reshape(1, h, -1))
