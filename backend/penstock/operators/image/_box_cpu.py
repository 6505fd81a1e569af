"""Box filters (all weights are equal) of uint8 images on the CPU: sum integers, and multiply each sum once."""

from __future__ import annotations

import functools

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import load, rounded, store

# For larger windows, OpenCV uses Fourier transforms; their rounding errors exceed the bound that `sums_first` assumes.
_MAX_AREA = 120
_UNIT_ROUNDOFF = 2.0**-24
# Number of sums that are multiplied by the weight at once.
_LANES = 16


@functools.lru_cache(maxsize=64)
def sums_first(weight: float, area: int) -> bool:
    """Return whether summing bytes before weighting them gives the same result as summing float32 products in any order.

    Args:
        weight: the weight of every element, a float32.
        area: the number of elements in the window.
    """
    if area > _MAX_AREA or not 0 < weight <= 1:
        return False
    sums = np.arange(255 * area + 1)
    exact = sums * weight
    # The error bound of summing products; multiplying an exact sum once has a smaller error.
    error = (area + 1) * _UNIT_ROUNDOFF * exact
    return not (np.abs(exact - np.floor(exact) - 0.5) <= error)[exact <= 256].any()


def filter_box(
    source: np.ndarray,
    extents: tuple[int, ...],
    anchor: tuple[int, ...],
    border: str,
    weight: float,
    target: np.ndarray,
) -> None:
    """Filter an image with a window of equal weights.

    Args:
        source: uint8 of shape (H, W) or (H, W, C), contiguous.
        extents: the window's height and width.
        anchor: row and column of the window's element that is aligned with the target pixel.
        border: one of :data:`penstock.kernels.borders.BORDERS`; "constant" pads with zeros.
        weight: the weight of every element; :func:`sums_first` must hold for it.
        target: uint8, with at most as many rows and columns as the source.
    """
    rows, columns = (
        _places(extent, target.shape[axis] + extents[axis] - 1, anchor[axis], border)
        for axis, extent in enumerate(source.shape[:2])
    )
    out = target if target.flags.c_contiguous else np.empty(target.shape, np.uint8)
    _filter_box(
        source.reshape(*source.shape[:2], -1),
        rows,
        columns,
        anchor[1],
        np.float32(weight),
        out.reshape(*target.shape[:2], -1),
    )
    if out is not target:
        target[...] = out


def _places(extent: int, count: int, before: int, border: str) -> np.ndarray:
    """Return the index, below ``extent``, to which each of ``count`` positions starting at ``-before`` maps; -1: outside."""
    positions = np.arange(-before, count - before)
    if border == "constant":
        return np.where((positions >= 0) & (positions < extent), positions, -1)
    if border == "replicate":
        return positions.clip(0, extent - 1)
    if border == "wrap":
        return positions % extent
    repeated = border == "reflect"
    period = 2 * extent if repeated else max(2 * extent - 2, 1)
    positions %= period
    return np.where(positions >= extent, period - positions - repeated, positions)


@inner
def _extend(padded: np.ndarray, sums: np.ndarray, columns: np.ndarray, begin: int, end: int, channels: int) -> None:
    for x in range(begin, end):
        if columns[x] >= 0:
            for c in range(channels):
                padded[x * channels + c] = sums[columns[x] * channels + c]


@inner
def _copy(numbers: np.ndarray, to: np.ndarray) -> None:
    for i in range(to.size):
        to[i] = numbers[i]


@inner
def _add(totals: np.ndarray, numbers: np.ndarray) -> None:
    for i in range(totals.size):
        totals[i] += np.uint16(numbers[i])


@inner
def _subtract(totals: np.ndarray, numbers: np.ndarray) -> None:
    for i in range(totals.size):
        totals[i] -= np.uint16(numbers[i])


@inner
def _weigh(totals: np.ndarray, weight: np.float32, out: np.ndarray) -> None:
    blocks = totals.size - totals.size % _LANES
    for i in range(0, blocks, _LANES):
        store(out, i, rounded(load(totals, i, _LANES) * weight, out[0]))
    for i in range(blocks, totals.size):
        out[i] = converted(np.float32(totals[i]) * weight, out[0])


@kernel
def _filter_box(
    source: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    before: int,
    weight: np.float32,
    target: np.ndarray,
) -> None:
    """Filter with column sums that are updated from row to row.

    Args:
        rows, columns: the source row or column that each row or column of the padded image repeats; -1: zeros.
        before: number of columns of padding left of the image.
    """
    height, width = rows.size - target.shape[0] + 1, columns.size - target.shape[1] + 1
    channels = source.shape[2]
    rows_in, out = source.reshape(source.shape[0], -1), target.reshape(target.shape[0], -1)
    sums = np.zeros(rows_in.shape[1], np.uint16)
    padded = np.zeros(columns.size * channels, np.uint16)
    totals = np.empty(out.shape[1], np.uint16)
    inside = min(source.shape[1], columns.size - before)
    for y in range(1 - height, out.shape[0]):
        if rows[y + height - 1] >= 0:
            _add(sums, rows_in[rows[y + height - 1]])
        if y < 0:
            continue
        _copy(sums, padded[before * channels : (before + inside) * channels])
        _extend(padded, sums, columns, 0, before, channels)
        _extend(padded, sums, columns, before + inside, columns.size, channels)
        _copy(padded, totals)
        for x in range(1, width):
            _add(totals, padded[x * channels : x * channels + totals.size])
        _weigh(totals, weight, out[y])
        if rows[y] >= 0:
            _subtract(sums, rows_in[rows[y]])
