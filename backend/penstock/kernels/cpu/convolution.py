"""Convolution along one axis on the CPU, reflecting at the border without repeating the edge."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.halves import rounded_to_halves
from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.simd import load, rounded, store, zeros


@kernel
def reflected(index: int, size: int) -> int:
    """Return the position in ``[0, size)`` onto which ``index`` is reflected."""
    if size == 1:
        return 0
    while index < 0 or index >= size:
        index = -index if index < 0 else 2 * size - 2 - index
    return index


@kernel
def _convolve(source: np.ndarray, window: np.ndarray, target: np.ndarray, like: np.generic) -> None:
    """Convolve the middle axis of source (outer, n, inner) into target, of the same shape."""
    outer, size, inner = source.shape
    radius = window.size // 2
    line = np.empty(inner, np.float32)
    for o in range(outer):
        for i in range(size):
            line[:] = np.float32(0)
            for k in range(window.size):
                weight = window[k]
                row = source[o, reflected(i + k - radius, size)]
                for j in range(inner):
                    line[j] += weight * np.float32(row[j])
            out = target[o, i]
            for j in range(inner):
                out[j] = converted(line[j], like)


@kernel
def _convolve_rows(source: np.ndarray, window: np.ndarray, target: np.ndarray, like: np.generic) -> None:
    """Same as ``_convolve``, but process whole rows at once: for small inner extents."""
    outer, size, inner = source.shape
    radius = window.size // 2
    padded = np.empty(((size + 2 * radius), inner), np.float32)
    values = padded.reshape(-1)
    line = np.empty(size * inner, np.float32)
    for o in range(outer):
        for i in range(size + 2 * radius):
            place = reflected(i - radius, size)
            for j in range(inner):
                padded[i, j] = np.float32(source[o, place, j])
        line[:] = np.float32(0)
        for k in range(window.size):
            weight = window[k]
            part = values[k * inner : k * inner + line.size]
            for j in range(line.size):
                line[j] += weight * part[j]
        out = target[o].reshape(-1)
        for j in range(line.size):
            out[j] = converted(line[j], like)


# The number of adjacent results that are summed at a time.
_LANES = 32


@kernel
def _filter_row(
    row: np.ndarray, width: int, window: np.ndarray, padded: np.ndarray, target: np.ndarray, first: int
) -> None:
    """Filter one row of ``width`` pixels into ``target`` from ``first`` on; up to ``_LANES - 1`` values after the row are overwritten."""
    inner, radius = row.size // width, window.size // 2
    for i in range(radius):
        before, after = reflected(i - radius, width) * inner, reflected(width + i, width) * inner
        for j in range(inner):
            padded[i * inner + j] = np.float32(row[before + j])
            padded[(radius + width + i) * inner + j] = np.float32(row[after + j])
    middle = padded[radius * inner : radius * inner + row.size]
    for j in range(row.size):
        middle[j] = np.float32(row[j])
    for x in range(0, row.size, _LANES):
        total = zeros(_LANES)
        for k in range(window.size):
            total = total + load(padded, x + k * inner, _LANES) * window[k]
        store(target, first + x, total)


@kernel
def _convolve_images(
    source: np.ndarray, vertical: np.ndarray, horizontal: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """Convolve both axes of images (number, height, width, inner) into target, of the same shape; horizontally first.

    Horizontal sums are stored only for the rows that the vertical window covers, so that they stay in the cache.
    """
    count, height, width, inner = source.shape
    length, taps, radius = width * inner, vertical.size, vertical.size // 2
    stride, kept = (length + _LANES - 1) // _LANES * _LANES, min(taps, height)
    padded = np.zeros((width + horizontal.size) * inner + _LANES, np.float32)
    rows, begins = np.empty(kept * stride, np.float32), np.empty(taps, np.int64)
    end = np.empty(_LANES, target.dtype)
    for n in range(count):
        image, out = source[n].reshape(height, length), target[n].reshape(-1)
        done = 0
        for y in range(height):
            while done <= min(y + radius, height - 1):
                _filter_row(image[done], width, horizontal, padded, rows, done % kept * stride)
                done += 1
            for k in range(taps):
                begins[k] = reflected(y + k - radius, height) % kept * stride
            for x in range(0, length, _LANES):
                total = zeros(_LANES)
                for k in range(taps):
                    total = total + load(rows, begins[k] + x, _LANES) * vertical[k]
                total = rounded(total, like)
                if x + _LANES <= length:
                    store(out, y * length + x, total)
                else:
                    store(end, 0, total)
                    for i in range(length - x):
                        out[y * length + x + i] = end[i]


# For smaller inner extents, the vectors of the inner loop would be mostly empty.
_SMALL_INNER = 32


def convolve_axis(source: np.ndarray, axis: int, window: np.ndarray, target: np.ndarray) -> None:
    """Correlate one axis of a contiguous array with an odd window; ``target`` has the same shape."""
    shape = source.shape
    folded = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    kernel = _convolve_rows if folded[2] < _SMALL_INNER else _convolve
    kernel(source.reshape(folded), window, target.reshape(folded), target.dtype.type(0))


def _convolve_halves(source: np.ndarray, axis: int, window: np.ndarray) -> np.ndarray:
    """Correlate one axis of a float16 array: as in DALI, each product is rounded to float16, and sums are float32."""
    size, radius = source.shape[axis], window.size // 2
    places = [reflected(index, size) for index in range(-radius, size + radius)]
    total = np.zeros(source.shape, np.float32)
    wide = source.astype(np.float32)
    for k, weight in enumerate(window):
        total += rounded_to_halves(weight * wide.take(places[k : k + size], axis))
    return total


def _is_narrow(dtype: np.dtype) -> bool:
    """Return whether elements of this type can be loaded into vectors of floats and stored from them."""
    return dtype == np.float32 or (dtype.kind in "iu" and dtype.itemsize <= 2)


def convolve_axes(source: np.ndarray, windows: Sequence[tuple[int, np.ndarray]], target: np.ndarray) -> None:
    """Correlate several axes, from the last to the first, each with its window.

    Results are rounded to the type of ``target`` after the last axis only, except for float16.
    """
    if source.dtype == np.float16:
        for axis, window in reversed(windows):
            result = _convolve_halves(source, axis, window)
            source = rounded_to_halves(result)
        target[...] = source if target.dtype == np.float16 else result
        return
    axes = [axis for axis, _ in windows]
    if axes == [axes[0], axes[0] + 1] and _is_narrow(source.dtype) and _is_narrow(target.dtype):
        shape, first = source.shape, axes[0]
        images = (math.prod(shape[:first]), *shape[first : first + 2], math.prod(shape[first + 2 :]))
        weights = [window for _, window in windows]
        result = target.reshape(images)
        _convolve_images(np.ascontiguousarray(source).reshape(images), *weights, result, target.dtype.type(0))
        return
    for number, (axis, window) in enumerate(reversed(windows), 1):
        result = target if number == len(windows) else np.empty(source.shape, np.float32)
        convolve_axis(source, axis, window, result)
        source = result
