"""Sums along dimensions on the CPU, in single precision and in DALI's order, so that they are equal to DALI's bit for bit.

Elements are summed one after the other in groups of at most 32; the sums of groups are added pairwise, that is, the sum of a range is the
sum of its first half plus that of its second half. If several dimensions are summed, the last ones come first.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import NamedTuple

import numpy as np

from penstock.core.arrays import address
from penstock.kernels.cpu.callables import Kernel
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import elements_at
from penstock.kernels.cpu.simd import load, store, store_transposed, zeros

_GROUP = 32
# All integers up to this number are exact in single precision.
_EXACT = 1 << 24
# The maximum number of elements of a row whose sums stay in registers.
_LANES = 4
_SUM, _SQUARES, _DEVIATIONS = range(3)
# The number of groups that are summed side by side if rows have one element, and the minimum number of elements for which that pays off.
_GROUPS_ABREAST, _MIN_NUMBERS_IN_LANES = 16, 1024
# The minimum number of exact sums that are computed side by side.
_ABREAST = 64
# The number of rows of up to _LANES elements that are summed side by side: of values, and of squares, whose groups have fewer rows.
_ROWS_ABREAST, _ROWS_OF_SQUARES_ABREAST = 64, 16
# The maximum number of bytes whose sum always fits into 16 bits.
_NARROW_ROWS = 256


@kernel
def _split(count: int, group: int) -> np.ndarray:
    """Split ``count`` elements into groups of at most ``group``; return the groups' sizes. Their number is a power of two, and some may be
    empty.
    """
    sizes = np.array([count])
    while sizes.max() > group:
        halves = np.empty(2 * sizes.size, np.int64)
        for i in range(sizes.size):
            first = sizes[i] if sizes[i] <= group else sizes[i] >> 1
            halves[2 * i], halves[2 * i + 1] = first, sizes[i] - first
        sizes = halves
    return sizes


@kernel
def _join(sums: np.ndarray, inner: int, target: np.ndarray) -> None:
    """Add the sums of adjacent groups until one is left: sums (groups, lanes) to target (inner)."""
    count = sums.shape[0]
    while count > 1:
        count >>= 1
        for i in range(count):
            for j in range(inner):
                sums[i, j] = sums[2 * i, j] + sums[2 * i + 1, j]
    target[:] = sums[0, :inner]


@inner
def _term(value: np.number, terms: int, centre: np.float32) -> np.float32:
    """Return the term that an element contributes to the sum: its value, its square, or its squared distance from ``centre``."""
    if terms == _SUM:
        return np.float32(value)
    if terms == _SQUARES:
        return np.float32(value * value)
    distance = np.float32(value) - centre
    return np.float32(distance * distance)


@kernel
def _sum_rows(source: np.ndarray, first: int, count: int, terms: int, centres: np.ndarray, total: np.ndarray) -> None:
    """Sum ``count`` rows of source (rows, inner), one after the other."""
    inner = source.shape[1]
    if inner <= _LANES:
        for i in range(inner):
            sum_ = np.float32(0)
            for r in range(first, first + count):
                sum_ += _term(source[r, i], terms, centres[i])
            total[i] = sum_
        return
    total[:inner] = 0
    for r in range(first, first + count):
        for i in range(inner):
            total[i] += _term(source[r, i], terms, centres[i])


@kernel
def _sum_groups(
    source: np.ndarray, sizes: np.ndarray, terms: int, centres: np.ndarray, sums: np.ndarray, begin: int, first: int
) -> None:
    """Compute the sums of groups from group ``begin`` on; that group begins at row ``first``."""
    for g in range(begin, sizes.size):
        _sum_rows(source, first, sizes[g], terms, centres, sums[g])
        first += sizes[g]


@kernel
def _sum_groups_of_numbers(
    source: np.ndarray,
    sizes: np.ndarray,
    terms: int,
    centre: np.float32,
    sums: np.ndarray,
    begin: int,
    first: int,
) -> None:
    """Same as :func:`_sum_groups`, for rows of one element: four groups at a time, because within a group each addition has to wait for the
    previous one.
    """
    p0, g = first, begin
    while g + 4 <= sizes.size:
        p1 = p0 + sizes[g]
        p2 = p1 + sizes[g + 1]
        p3 = p2 + sizes[g + 2]
        count = min(min(sizes[g], sizes[g + 1]), min(sizes[g + 2], sizes[g + 3]))
        a = b = c = d = np.float32(0)
        for r in range(count):
            a += _term(source[p0 + r], terms, centre)
            b += _term(source[p1 + r], terms, centre)
            c += _term(source[p2 + r], terms, centre)
            d += _term(source[p3 + r], terms, centre)
        sums[g, 0], sums[g + 1, 0], sums[g + 2, 0], sums[g + 3, 0] = a, b, c, d
        for i in range(4):
            for r in range(p0 + count, p0 + sizes[g + i]):
                sums[g + i, 0] += _term(source[r], terms, centre)
            p0 += sizes[g + i]
        g += 4
    for i in range(g, sizes.size):
        sums[i, 0] = 0
        for r in range(p0, p0 + sizes[i]):
            sums[i, 0] += _term(source[r], terms, centre)
        p0 += sizes[i]


@kernel
def _sum_groups_in_lanes(
    source: np.ndarray, sizes: np.ndarray, squares: bool, centre: np.float32, sums: np.ndarray
) -> tuple[int, int]:
    """Same as :func:`_sum_groups_of_numbers`, with a group in each lane of a vector; return the number of groups and the number of elements
    that were summed.

    The last groups are not summed, because vectors would extend beyond the end of the elements.
    """
    firsts, block = np.empty(_GROUPS_ABREAST, np.int64), np.empty(_GROUPS_ABREAST * _GROUPS_ABREAST, source.dtype)
    first, g, abreast = 0, 0, np.empty(_GROUPS_ABREAST, np.float32)
    while g + _GROUPS_ABREAST <= sizes.size:
        count, place = sizes[g], first
        for k in range(_GROUPS_ABREAST):
            firsts[k] = place
            place += sizes[g + k]
            count = min(count, sizes[g + k])
        if place + _GROUPS_ABREAST > source.size:
            break
        totals = zeros(_GROUPS_ABREAST)
        for begin in range(0, count, _GROUPS_ABREAST):
            store_transposed(block, source, firsts, begin, _GROUPS_ABREAST)
            end = min(count - begin, _GROUPS_ABREAST) * _GROUPS_ABREAST
            if squares:
                for i in range(0, end, _GROUPS_ABREAST):
                    distances = load(block, i, _GROUPS_ABREAST) - centre
                    totals = totals + distances * distances
            else:
                for i in range(0, end, _GROUPS_ABREAST):
                    totals = totals + load(block, i, _GROUPS_ABREAST)
        store(abreast, 0, totals)
        for k in range(_GROUPS_ABREAST):
            for i in range(firsts[k] + count, firsts[k] + sizes[g + k]):
                value = np.float32(source[i])
                if squares:
                    value = (value - centre) * (value - centre)
                abreast[k] += value
            sums[g + k, 0] = abreast[k]
        first, g = place, g + _GROUPS_ABREAST
    return g, first


@kernel
def _sum_groups_of_pixels(
    source: np.ndarray, inner: int, sizes: np.ndarray, squares: bool, centres: np.ndarray, sums: np.ndarray
) -> tuple[int, int]:
    """Same as :func:`_sum_groups_of_numbers`, for rows of two to ``_LANES`` elements; return the number of groups and the number of
    rows that were summed.

    The last groups are not summed, because vectors would extend beyond the end of the elements.
    """
    p0, g, flat = 0, 0, sums.reshape(-1)
    centre = load(centres, 0, _LANES)
    while g + 4 <= sizes.size:
        p1 = p0 + sizes[g] * inner
        p2 = p1 + sizes[g + 1] * inner
        p3 = p2 + sizes[g + 2] * inner
        end = p3 + sizes[g + 3] * inner
        if end + _LANES > source.size:
            break
        count = min(min(sizes[g], sizes[g + 1]), min(sizes[g + 2], sizes[g + 3]))
        a, b, c, d = zeros(_LANES), zeros(_LANES), zeros(_LANES), zeros(_LANES)
        if squares:
            for r in range(0, count * inner, inner):
                u, v = load(source, p0 + r, _LANES) - centre, load(source, p1 + r, _LANES) - centre
                w, x = load(source, p2 + r, _LANES) - centre, load(source, p3 + r, _LANES) - centre
                a, b, c, d = a + u * u, b + v * v, c + w * w, d + x * x
        else:
            for r in range(0, count * inner, inner):
                a, b = a + load(source, p0 + r, _LANES), b + load(source, p1 + r, _LANES)
                c, d = c + load(source, p2 + r, _LANES), d + load(source, p3 + r, _LANES)
        first = _LANES * g
        store(flat, first, a)
        store(flat, first + _LANES, b)
        store(flat, first + 2 * _LANES, c)
        store(flat, first + 3 * _LANES, d)
        for i in range(4):
            for r in range(p0 + count * inner, p0 + sizes[g + i] * inner, inner):
                for j in range(inner):
                    value = np.float32(source[r + j])
                    if squares:
                        value = (value - centres[j]) * (value - centres[j])
                    sums[g + i, j] += value
            p0 += sizes[g + i] * inner
        g += 4
    return g, p0 // inner


@kernel
def _tree_sums(source: np.ndarray, group: int, terms: int, centres: np.ndarray, target: np.ndarray) -> None:
    """Sum source (outer, count, inner) to target (outer, inner), in groups of at most ``group`` and pairwise."""
    outer, count, inner = source.shape
    sizes = _split(count, group)
    sums = np.empty((sizes.size, max(inner, _LANES)), np.float32)
    if inner == 1 and sizes.size == 1:
        for o in range(outer):
            sum_ = np.float32(0)
            for r in range(count):
                sum_ += _term(source[o, r, 0], terms, centres[o, 0])
            target[o, 0] = sum_
        return
    for o in range(outer):
        if inner == 1:
            _sum_groups_of_numbers(source[o].reshape(-1), sizes, terms, centres[o, 0], sums, 0, 0)
        else:
            _sum_groups(source[o], sizes, terms, centres[o], sums, 0, 0)
        _join(sums, inner, target[o])


@kernel
def _tree_sums_of_pixels(source: np.ndarray, group: int, terms: int, centres: np.ndarray, target: np.ndarray) -> None:
    """Same as :func:`_tree_sums`, for integers of 8 or 16 bits or float32, with an inner extent of two to ``_LANES``."""
    outer, count, inner = source.shape
    sizes = _split(count, group)
    sums, own = np.empty((sizes.size, _LANES), np.float32), np.zeros(_LANES, np.float32)
    for o in range(outer):
        own[:inner] = centres[o]
        done, row = _sum_groups_of_pixels(source[o].reshape(-1), inner, sizes, terms != _SUM, own, sums)
        _sum_groups(source[o], sizes, terms, centres[o], sums, done, row)
        _join(sums, inner, target[o])


@kernel
def _tree_sums_of_numbers(source: np.ndarray, group: int, terms: int, centres: np.ndarray, target: np.ndarray) -> None:
    """Same as :func:`_tree_sums`, for integers of 8 or 16 bits or float32, with an inner extent of one."""
    outer, count, _ = source.shape
    sizes = _split(count, group)
    sums = np.empty((sizes.size, 1), np.float32)
    for o in range(outer):
        numbers = source[o].reshape(-1)
        done, first = _sum_groups_in_lanes(numbers, sizes, terms != _SUM, centres[o, 0], sums)
        _sum_groups_of_numbers(numbers, sizes, terms, centres[o, 0], sums, done, first)
        _join(sums, 1, target[o])


class _Run(NamedTuple):
    """Adjacent dimensions, of which either all are summed or none."""

    is_summed: bool
    extent: int


def tree_sums(
    data: np.ndarray, axes: tuple[int, ...], square: bool = False, centre: np.ndarray | None = None
) -> np.ndarray:
    """Return the sums along ``axes`` of the elements, of their squares, or of their squared distances from ``centre``.

    Args:
        data: integers or float32.
        axes: the numbers of the dimensions to sum; at least one.
        square: whether to sum squares.
        centre: float32, with one element or with extent 1 along ``axes``; if given, squared distances from it are summed.

    Returns:
        float32, without the dimensions of ``axes``.
    """
    kept = tuple(extent for axis, extent in enumerate(data.shape) if axis not in axes)
    runs = [
        _Run(summed, math.prod(data.shape[axis] for axis in group))
        for summed, group in groupby(range(data.ndim), lambda axis: axis in axes)
    ]
    terms = _DEVIATIONS if centre is not None else _SQUARES if square else _SUM
    values = np.ascontiguousarray(data)
    if terms == _SQUARES and values.dtype.kind != "f":
        # The square of a value of up to 16 bits is rounded to the same float as a product of floats and as an integer.
        values = values.astype(np.float32 if _is_narrow(values) else np.int64)
    volume = 1
    while any(run.is_summed for run in runs):
        last = max(number for number, run in enumerate(runs) if run.is_summed)
        outer = math.prod(run.extent for run in runs[:last])
        inner = math.prod(run.extent for run in runs[last + 1 :])
        centres = np.zeros((outer, inner), np.float32)
        if terms == _DEVIATIONS and centre is not None:
            along = [1 if run.is_summed else run.extent for run in runs]
            own = centre.reshape(along if centre.size > 1 else [1] * len(runs))
            extents = [1 if number == last else run.extent for number, run in enumerate(runs)]
            centres[:] = np.broadcast_to(own, extents).reshape(outer, inner)
        sums = np.empty((outer, inner), np.float32)
        count = runs[last].extent
        _kernel_of(values, count, inner)(
            values.reshape(outer, count, inner), max(1, _GROUP // max(volume, 1)), terms, centres, sums
        )
        volume *= count
        values, terms = sums, _SUM
        del runs[last]
    return values.reshape(kept)


def _kernel_of(values: np.ndarray, count: int, inner: int) -> Kernel:
    if not _is_narrow(values) or inner > _LANES:
        return _tree_sums
    if inner > 1:
        return _tree_sums_of_pixels
    return _tree_sums_of_numbers if count >= _MIN_NUMBERS_IN_LANES else _tree_sums


def _is_narrow(values: np.ndarray) -> bool:
    """Return whether elements of this type can be loaded into vectors of floats."""
    return values.dtype == np.float32 or (values.dtype.kind in "iu" and values.itemsize <= 2)


@inner
def _square_or_value(value: np.number, squares: bool) -> np.int32:
    whole = np.int32(value)
    return np.int32(whole * whole) if squares else whole


@inner
def _sum_numbers_exactly(values: np.ndarray, first: int, sizes: np.ndarray, squares: bool, sums: np.ndarray) -> None:
    """Compute the sums of consecutive groups of ``sizes`` elements, from element ``first`` on."""
    for g in range(sizes.size):
        part, sum_ = values[first : first + sizes[g]], np.int32(0)
        if squares:
            for i in range(part.size):
                sum_ = np.int32(sum_ + _square_or_value(part[i], True))
        else:
            for i in range(part.size):
                sum_ = np.int32(sum_ + _square_or_value(part[i], False))
        sums[g, 0] = np.float32(sum_)
        first += part.size


@inner
def _sum_columns_exactly(
    values: np.ndarray, first: int, inner: int, sizes: np.ndarray, squares: bool, partial: np.ndarray, sums: np.ndarray
) -> None:
    """Compute the sums of consecutive groups of rows of ``inner`` elements, from element ``first`` on.

    Args:
        partial: scratch memory for the sums of several rows that are added side by side; its type can hold sums of ``_NARROW_ROWS``
            elements.
    """
    step = partial.size
    totals, place = np.empty(step, np.int32), first
    for g in range(sizes.size):
        end = place + sizes[g] * inner
        totals[:] = 0
        while place < end:
            stop = min(place + _NARROW_ROWS * step, end)
            partial[:] = 0
            while place < stop:
                part = values[place : min(place + step, stop)]
                if squares:
                    for j in range(part.size):
                        partial[j] += _square_or_value(part[j], True)
                else:
                    for j in range(part.size):
                        partial[j] += _square_or_value(part[j], False)
                place += part.size
            for j in range(step):
                totals[j] += np.int32(partial[j])
        for c in range(inner):
            sum_ = np.int32(0)
            for j in range(c, step, inner):
                sum_ += totals[j]
            sums[g, c] = np.float32(sum_)


@kernel
def _sum_exactly(
    samples: np.ndarray,
    begin: int,
    end: int,
    group: int,
    squares: bool,
    like: np.generic,
    like_partial: np.generic,
    target: np.ndarray,
) -> None:
    """Sum samples (outer, count, inner) to (outer, inner), if the sums of groups are exact in single precision.

    Args:
        samples: int64 with a row for each sample: its address, these three extents, and the position in ``target`` at which its sums begin.
        begin, end: the range of samples to compute.
        group: the maximum number of rows whose sum is always exact.
        like: a value of the elements' type.
        like_partial: a value of a type that holds the sum of ``_NARROW_ROWS`` elements, or of their squares.
    """
    for sample in range(begin, end):
        address, outer, count, inner, to = samples[sample]
        values, sizes = elements_at(address, outer * count * inner, like), _split(count, group)
        sums = np.empty((sizes.size, inner), np.float32)
        abreast = _ROWS_ABREAST if group > _NARROW_ROWS else _ROWS_OF_SQUARES_ABREAST
        abreast = abreast if inner <= _LANES else -(-_ABREAST // inner)
        partial = np.full(inner * abreast, like_partial)
        for o in range(outer):
            first = o * count * inner
            if inner == 1:
                _sum_numbers_exactly(values, first, sizes, squares, sums)
            else:
                _sum_columns_exactly(values, first, inner, sizes, squares, partial, sums)
            _join(sums, inner, target[to + o * inner : to + (o + 1) * inner])


def are_sums_exact(dtype: np.dtype, square: bool) -> bool:
    """Return whether sums of 256 elements of a type, or of their squares, are always exact in single precision."""
    return dtype.kind in "iu" and 8 * dtype.itemsize * (2 if square else 1) <= 16


def exact_sums(samples: np.ndarray, begin: int, end: int, dtype: np.dtype, square: bool, target: np.ndarray) -> None:
    """Compute :func:`tree_sums` of integers, in groups so small that their sums are exact in any order.

    Args:
        samples: int64 of shape (samples, 5): the address of a sample's contiguous elements; the number of elements in the dimensions
            before, along and after those that are summed; and the position in ``target`` at which its sums begin.
        begin, end: the range of samples to compute.
        dtype: the elements' type, for which sums are exact.
        square: whether the elements' squares are summed.
        target: filled; float32.
    """
    bits = 8 * dtype.itemsize * (2 if square else 1)
    partial = np.int32 if bits > 8 else np.uint16 if dtype.kind == "u" else np.int16
    _sum_exactly(samples, begin, end, _EXACT >> bits, square, dtype.type(0), partial(0), target)


def sums_of_narrow_integers(data: np.ndarray, volumes: tuple[int, int], square: bool) -> np.ndarray | None:
    """Return the sums of an array, computed by :func:`exact_sums`, as float32 of the shape ``volumes``; None if sums are not exact.

    Args:
        data: contiguous.
        volumes: the number of elements in the dimensions before and in those after the dimensions that are summed.
        square: whether the elements' squares are summed.
    """
    outer, inner = volumes
    if not are_sums_exact(data.dtype, square):
        return None
    result = np.empty(volumes, np.float32)
    samples = np.array([[address(data), outer, data.size // max(outer * inner, 1), inner, 0]])
    exact_sums(samples, 0, 1, data.dtype, square, result.reshape(-1))
    return result
