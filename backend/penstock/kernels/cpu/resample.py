"""Separable resampling on CPU.

Vertical taps are summed into a row of floats, which is contiguous and so is vectorized; horizontal taps are read from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.cpu.convert import converted
from penstock.kernels.filters import Taps

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def _vertical(source, start, weights, row):  # type: ignore[no-untyped-def]
    """row = sum over k of weights[k] * source[start + k]; rows are flat."""
    first = source[start]
    weight = weights[0]
    for i in range(row.size):
        row[i] = weight * np.float32(first[i])
    for k in range(1, weights.size):
        weight = weights[k]
        if weight == np.float32(0):
            continue
        line = source[start + k]
        for i in range(row.size):
            row[i] += weight * np.float32(line[i])


@njit(**_OPTIONS)
def _horizontal(row, channels, starts, weights, target):  # type: ignore[no-untyped-def]
    """target[x * channels + c] = sum over k of weights[x, k] * row[(starts[x] + k) * channels + c]."""
    taps = weights.shape[1]
    if channels == 3:
        for x in range(starts.size):
            base = starts[x] * 3
            a = np.float32(0)
            b = np.float32(0)
            c = np.float32(0)
            for k in range(taps):
                weight = weights[x, k]
                a += weight * row[base]
                b += weight * row[base + 1]
                c += weight * row[base + 2]
                base += 3
            target[3 * x] = a
            target[3 * x + 1] = b
            target[3 * x + 2] = c
        return
    for x in range(starts.size):
        for c in range(channels):
            base = starts[x] * channels + c
            total = np.float32(0)
            for k in range(taps):
                total += weights[x, k] * row[base + k * channels]
            target[channels * x + c] = total


@njit(**_OPTIONS)
def _resample_plane(source, channels, v_starts, v_weights, h_starts, h_weights, target, like):  # type: ignore[no-untyped-def]
    """Both axes of an image whose rows are flat: source (H, W*C) -> target (h, w*C)."""
    row = np.empty(source.shape[1], np.float32)
    line = np.empty(target.shape[1], np.float32)
    for y in range(target.shape[0]):
        _vertical(source, v_starts[y], v_weights[y], row)
        _horizontal(row, channels, h_starts, h_weights, line)
        out = target[y]
        for i in range(line.size):
            out[i] = converted(line[i], like)


@njit(**_OPTIONS)
def _resample_axis(source, starts, weights, target, like):  # type: ignore[no-untyped-def]
    """The middle axis of source (outer, n, inner) -> target (outer, m, inner)."""
    row = np.empty(source.shape[2], np.float32)
    for o in range(source.shape[0]):
        for y in range(target.shape[1]):
            _vertical(source[o], starts[y], weights[y], row)
            out = target[o, y]
            for i in range(row.size):
                out[i] = converted(row[i], like)


@njit(**_OPTIONS)
def _gather_plane(source, channels, rows, columns, target, like):  # type: ignore[no-untyped-def]
    """Nearest neighbours of source (H, W*C) -> target (h, w*C)."""
    for y in range(rows.size):
        line = source[rows[y]]
        out = target[y]
        if channels == 3:
            for x in range(columns.size):
                base = 3 * columns[x]
                out[3 * x] = converted(line[base], like)
                out[3 * x + 1] = converted(line[base + 1], like)
                out[3 * x + 2] = converted(line[base + 2], like)
        else:
            for x in range(columns.size):
                base = channels * columns[x]
                for c in range(channels):
                    out[channels * x + c] = converted(line[base + c], like)


def resample_image(source: np.ndarray, vertical: Taps, horizontal: Taps, target: np.ndarray) -> None:
    """Resamples an image.

    Args:
        source: contiguous, of shape (H, W, C).
        vertical, horizontal: filters of the axes.
        target: of shape (h, w, C); its dtype tells how results are rounded.
    """
    channels = source.shape[2]
    _resample_plane(
        source.reshape(source.shape[0], -1),
        channels,
        vertical.starts,
        vertical.weights,
        horizontal.starts,
        horizontal.weights,
        target.reshape(target.shape[0], -1),
        target.dtype.type(0),
    )


def resample_axis(source: np.ndarray, axis: int, taps: Taps, target: np.ndarray) -> None:
    """Resamples one axis of a contiguous array of any rank."""
    _resample_axis(
        _folded_around(source, axis), taps.starts, taps.weights, _folded_around(target, axis), target.dtype.type(0)
    )


def _folded_around(array: np.ndarray, axis: int) -> np.ndarray:
    outer = int(np.prod(array.shape[:axis], dtype=np.int64))
    return array.reshape(outer, array.shape[axis], -1)


def gather_image(source: np.ndarray, rows: np.ndarray, columns: np.ndarray, target: np.ndarray) -> None:
    """Takes pixels (rows[y], columns[x]) of a contiguous image (H, W, C) into target (h, w, C)."""
    _gather_plane(
        source.reshape(source.shape[0], -1),
        source.shape[2],
        rows,
        columns,
        target.reshape(target.shape[0], -1),
        target.dtype.type(0),
    )
