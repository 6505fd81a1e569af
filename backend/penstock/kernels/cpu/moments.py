"""Sums and squared deviations along adjacent dimensions, and normalization with them.

Arrays are viewed as (outer, reduced, inner). A row has several dozen partial sums, to which adjacent elements are added in turn,
so that additions do not wait for each other. In the end, the partial sums of each output are added pairwise: the second half to the
first, again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import load, store, total, widened, zeros

# The minimum number of partial sums.
_ABREAST = 64
# The number of elements of a row that are processed at a time.
_LANES = 16


@kernel
def _step(inner: int) -> int:
    """Return the number of partial sums of a row: a multiple of ``inner``."""
    return inner * ((_ABREAST + inner - 1) // inner)


@inner
def _fold(totals: np.ndarray, inner: int) -> None:
    """Sum all groups of ``inner`` elements into the first group, pairwise: add the second half to the first, again and again."""
    groups = totals.size // inner
    while groups > 1:
        half = (groups + 1) // 2
        upper = totals[half * inner : groups * inner]
        for j in range(upper.size):
            totals[j] += upper[j]
        groups = half


@inner
def _repeat(values: np.ndarray, inner: int) -> None:
    """Fill ``values`` with copies of its first ``inner`` elements."""
    for j in range(inner):
        value = values[j]
        for k in range(j, values.size, inner):
            values[k] = value


@inner
def _row_sums(row: np.ndarray, inner: int, totals: np.ndarray) -> None:
    """Compute the sums of a row in the first elements of ``totals``."""
    step = totals.size
    for j in range(step):
        totals[j] = 0
    for begin in range(0, row.size, step):
        part = row[begin : begin + step]
        for j in range(part.size):
            totals[j] += np.float64(part[j])
    _fold(totals, inner)


@inner
def _row_squared_deviations(row: np.ndarray, inner: int, means: np.ndarray, totals: np.ndarray) -> None:
    step = totals.size
    for j in range(step):
        totals[j] = 0
    for begin in range(0, row.size, step):
        part = row[begin : begin + step]
        for j in range(part.size):
            difference = np.float32(part[j]) - means[j]
            totals[j] += np.float64(difference * difference)
    _fold(totals, inner)


@inner
def _normalize_row(
    row: np.ndarray, means: np.ndarray, factors: np.ndarray, shift: np.float32, out: np.ndarray, like: np.generic
) -> None:
    step = means.size
    for begin in range(0, row.size, step):
        part, place = row[begin : begin + step], out[begin : begin + step]
        for j in range(part.size):
            place[j] = converted((np.float32(part[j]) - means[j]) * factors[j] + shift, like)


@kernel
def _sums(source: np.ndarray, outer: int, inner: int, out: np.ndarray) -> None:
    size, totals = source.size // outer, np.empty(_step(inner), np.float64)
    for o in range(outer):
        _row_sums(source[o * size : (o + 1) * size], inner, totals)
        for j in range(inner):
            out[o, j] = totals[j]


@kernel
def _squared_deviations(source: np.ndarray, outer: int, inner: int, mean: np.ndarray, out: np.ndarray) -> None:
    size, step = source.size // outer, _step(inner)
    totals, means = np.empty(step, np.float64), np.empty(step, np.float32)
    for o in range(outer):
        for j in range(inner):
            means[j] = mean[o, j]
        _repeat(means, inner)
        _row_squared_deviations(source[o * size : (o + 1) * size], inner, means, totals)
        for j in range(inner):
            out[o, j] = totals[j]


@kernel
def _normalize(
    source: np.ndarray,
    outer: int,
    inner: int,
    mean: np.ndarray,
    factor: np.ndarray,
    shift: np.float32,
    target: np.ndarray,
    like: np.generic,
) -> None:
    size, step = source.size // outer, _step(inner)
    means, factors = np.empty(step, np.float32), np.empty(step, np.float32)
    for o in range(outer):
        for j in range(inner):
            means[j], factors[j] = mean[o, j], factor[o, j]
        _repeat(means, inner)
        _repeat(factors, inner)
        begin, end = o * size, (o + 1) * size
        _normalize_row(source[begin:end], means, factors, shift, target[begin:end], like)


@kernel
def _standardize(
    source: np.ndarray,
    outer: int,
    inner: int,
    ddof: int,
    epsilon: float,
    scale: np.float32,
    shift: np.float32,
    target: np.ndarray,
    like: np.generic,
) -> None:
    size, step = source.size // outer, _step(inner)
    count = size // inner
    totals = np.empty(step, np.float64)
    means, factors = np.empty(step, np.float32), np.empty(step, np.float32)
    for o in range(outer):
        begin, end = o * size, (o + 1) * size
        row = source[begin:end]
        _row_sums(row, inner, totals)
        for j in range(inner):
            means[j] = totals[j] / count
        _repeat(means, inner)
        _row_squared_deviations(row, inner, means, totals)
        for j in range(inner):
            variance = totals[j] / (count - ddof) if count > ddof else 0.0
            deviation = np.float32(np.sqrt(variance + epsilon))
            factors[j] = scale / deviation if deviation != 0 else np.float32(0)
        _repeat(factors, inner)
        _normalize_row(row, means, factors, shift, target[begin:end], like)


@inner
def standardize_row(
    source: np.ndarray,
    begin: int,
    end: int,
    ddof: int,
    epsilon: float,
    scale: np.float32,
    shift: np.float32,
    target: np.ndarray,
) -> None:
    """Standardize elements ``begin`` to ``end`` of a row; both arrays are float32. See :class:`Standard`."""
    blocks, count = end - (end - begin) % _LANES, end - begin
    totals = widened(zeros(_LANES))
    for i in range(begin, blocks, _LANES):
        totals = totals + widened(load(source, i, _LANES))
    mean = total(totals)
    for i in range(blocks, end):
        mean += np.float64(source[i])
    mean = np.float32(mean / count)
    totals = widened(zeros(_LANES))
    for i in range(begin, blocks, _LANES):
        differences = load(source, i, _LANES) - mean
        totals = totals + widened(differences * differences)
    squares = total(totals)
    for i in range(blocks, end):
        difference = source[i] - mean
        squares += np.float64(difference * difference)
    variance = squares / (count - ddof) if count > ddof else 0.0
    deviation = np.float32(np.sqrt(variance + epsilon))
    factor = scale / deviation if deviation != 0 else np.float32(0)
    for i in range(begin, blocks, _LANES):
        store(target, i, (load(source, i, _LANES) - mean) * factor + shift)
    for i in range(blocks, end):
        target[i] = (source[i] - mean) * factor + shift


@kernel
def _standardize_rows(
    source: np.ndarray,
    outer: int,
    ddof: int,
    epsilon: float,
    scale: np.float32,
    shift: np.float32,
    target: np.ndarray,
) -> None:
    size = source.size // outer
    for o in range(outer):
        standardize_row(source, o * size, (o + 1) * size, ddof, epsilon, scale, shift, target)


def around(data: np.ndarray, axes: Sequence[int]) -> tuple[int, int] | None:
    """Return the number of elements in the dimensions before and after ``axes``, as (outer, inner); None if these kernels do not suit
    the array.

    They do not suit it if the axes are not adjacent, if few wide rows are reduced, or if elements are float16 or bool.
    """
    shape = data.shape
    if data.dtype == np.float16 or data.dtype.kind == "b" or not data.size:
        return None
    if not axes or sorted(axes) != list(range(min(axes), max(axes) + 1)):
        return None
    outer, inner = math.prod(shape[: min(axes)]), math.prod(shape[max(axes) + 1 :])
    # If `inner` is large, whole rows are added to sums in memory, which does not pay off for few rows.
    return (outer, inner) if inner < _ABREAST or data.size // outer >= 4 * inner else None


def sums(data: np.ndarray, volumes: tuple[int, int]) -> np.ndarray:
    """Return the sums over the reduced dimension in float64, with the shape ``volumes``, which is from :func:`around`."""
    out = np.zeros(volumes, np.float64)
    _sums(np.ascontiguousarray(data).reshape(-1), *volumes, out)
    return out


def squared_deviations(data: np.ndarray, volumes: tuple[int, int], mean: np.ndarray) -> np.ndarray:
    """Return the sums of squared differences from ``mean``; squares are float32, sums float64.

    Args:
        data, volumes: see :func:`around`.
        mean: one mean for all sums, or one for each sum, in order.
    """
    out = np.zeros(volumes, np.float64)
    _squared_deviations(np.ascontiguousarray(data).reshape(-1), *volumes, _spread(mean, volumes), out)
    return out


def normalize(
    data: np.ndarray, volumes: tuple[int, int], mean: np.ndarray, factor: np.ndarray, shift: float, target: np.ndarray
) -> None:
    """Compute ``(data - mean) * factor + shift`` in single precision, converted to the type of ``target``.

    Args:
        data, volumes: see :func:`around`.
        mean, factor: one value for all elements, or one for each (outer, inner), in order.
        shift: added last.
        target: contiguous, not float16.
    """
    source, flat = np.ascontiguousarray(data).reshape(-1), target.reshape(-1)
    parameters = _spread(mean, volumes), _spread(factor, volumes)
    _normalize(source, *volumes, *parameters, np.float32(shift), flat, target.dtype.type(0))


class Standard(NamedTuple):
    """``(data - mean) / sqrt(variance + epsilon) * scale + shift``.

    Attributes:
        ddof: subtracted from the number of elements in the variance's denominator.
        epsilon: added to the variance.
        scale: the factor after the division. If ``variance + epsilon`` is 0, results are ``shift``.
        shift: added last.
    """

    ddof: int
    epsilon: float
    scale: np.float32
    shift: np.float32


def standardize(data: np.ndarray, volumes: tuple[int, int], standard: Standard, target: np.ndarray) -> None:
    """Normalize by ``standard``, in several passes over each row while the row is in the cache.

    The result is that of :func:`sums`, :func:`squared_deviations` and :func:`normalize`, except for the order in which float64
    numbers are added.

    Args:
        data, volumes: see :func:`around`.
        standard: see :class:`Standard`.
        target: contiguous, not float16.
    """
    source, flat = np.ascontiguousarray(data).reshape(-1), target.reshape(-1)
    if volumes[1] == 1 and source.dtype == flat.dtype == np.float32:
        _standardize_rows(source, volumes[0], *standard, flat)
        return
    _standardize(source, volumes[0], volumes[1], *standard, flat, target.dtype.type(0))


def _spread(values: np.ndarray, volumes: tuple[int, int]) -> np.ndarray:
    """Return values as float32 of the shape ``volumes``; a single value is repeated."""
    single = values.astype(np.float32, copy=False)
    return np.full(volumes, single) if single.size == 1 else np.ascontiguousarray(single).reshape(volumes)
