"""Kernels along one dimension of scores: softmax, argmax and top-k.

All kernels take ``places``, int64 with a row for each sample: the address of the sample's scores (float32), the offset of its results,
and the number of elements before, along and after the dimension. ``begin`` and ``end`` are the range of samples to compute.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import elements_at
from penstock.kernels.cpu.simd import larger, load, store
from penstock.operators.postprocessing._exponential import (
    FIFTH,
    FOURTH,
    LN2,
    LOG2_E,
    LOWEST_POWER,
    ROUNDING,
    SECOND,
    SIXTH,
    THIRD,
)

# Number of contiguous scores, and number of columns, computed at a time: few enough to stay in the L1 cache.
_ABREAST, _COLUMNS = 32, 256


@inner
def exponential(number: np.float64) -> np.float64:
    """Return e to a power of at most ``MAX_POWER``, computed as a power of 2 times a polynomial of the remainder.

    The relative error is a twentieth of that of rounding to float32. Powers below -200 are replaced by -200, whose result is 0 in
    float32.
    """
    power = LOWEST_POWER if number < LOWEST_POWER else number
    shifted = power * LOG2_E + ROUNDING
    rest = power - (shifted - ROUNDING) * LN2
    fraction = FOURTH + rest * (FIFTH + rest * SIXTH)
    fraction = 1.0 + rest * (1.0 + rest * (SECOND + rest * (THIRD + rest * fraction)))
    # The lowest mantissa bits of `shifted` hold the rounded exponent.
    exponent = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52)
    return fraction * exponent.view(np.float64)


@inner
def _find_largest(scores: np.ndarray, first: int, extent: int, inner: int, best: np.ndarray) -> None:
    """Fill ``best`` with the highest score of each of ``best.size`` adjacent columns; the first column begins at ``first``."""
    best[:] = scores[first : first + best.size]
    for place in range(first + inner, first + extent * inner, inner):
        row = scores[place : place + best.size]
        for i in range(best.size):
            best[i] = row[i] if row[i] > best[i] else best[i]


@inner
def _softmax_of_columns(
    scores: np.ndarray,
    first: int,
    extent: int,
    inner: int,
    best: np.ndarray,
    total: np.ndarray,
    results: np.ndarray,
    target: int,
) -> None:
    """Compute the softmax of adjacent columns, as many as ``best`` and ``total`` have elements."""
    count = best.size
    _find_largest(scores, first, extent, inner, best)
    total[:] = 0
    for offset in range(0, extent * inner, inner):
        row, powers = (
            scores[first + offset : first + offset + count],
            results[target + offset : target + offset + count],
        )
        for i in range(count):
            value = exponential(np.float64(row[i]) - np.float64(best[i]))
            total[i] += value
            powers[i] = value
    for i in range(count):
        total[i] = 1.0 / total[i]
    for offset in range(target, target + extent * inner, inner):
        powers = results[offset : offset + count]
        for i in range(count):
            powers[i] = np.float64(powers[i]) * total[i]


@inner
def _largest_of_row(scores: np.ndarray, first: int, extent: int) -> np.float32:
    """Return the highest of contiguous scores; an arbitrary number if one is NaN."""
    best, whole = scores[first], extent - extent % _ABREAST
    if whole:
        maxima = load(scores, first, _ABREAST)
        for i in range(first + _ABREAST, first + whole, _ABREAST):
            maxima = larger(load(scores, i, _ABREAST), maxima)
        lanes = np.empty(_ABREAST, np.float32)
        store(lanes, 0, maxima)
        for score in lanes:
            best = score if score > best else best
    for i in range(first + whole, first + extent):
        best = scores[i] if scores[i] > best else best
    return best


@inner
def _softmax_of_row(
    scores: np.ndarray, first: int, extent: int, totals: np.ndarray, results: np.ndarray, target: int
) -> None:
    """Compute the softmax of contiguous scores, as many at a time as ``totals`` has elements."""
    best = np.float64(_largest_of_row(scores, first, extent))
    step = totals.size
    totals[:] = 0
    for begin in range(0, extent, step):
        count = min(step, extent - begin)
        part = scores[first + begin : first + begin + count]
        powers = results[target + begin : target + begin + count]
        for i in range(count):
            value = exponential(np.float64(part[i]) - best)
            totals[i] += value
            powers[i] = value
    factor, powers = 1.0 / totals.sum(), results[target : target + extent]
    for i in range(extent):
        powers[i] = np.float64(powers[i]) * factor


@kernel
def softmax(places: np.ndarray, begin: int, end: int, results: np.ndarray) -> None:
    """Fill ``results``, float32, with the softmax of the scores along the dimension."""
    totals, maxima = np.empty(_COLUMNS, np.float64), np.empty(_COLUMNS, np.float32)
    for sample in range(begin, end):
        start, target, outer, extent, inner = places[sample]
        size = extent * inner
        scores = elements_at(start, outer * size, np.float32(0))
        for offset in range(0, outer * size, size):
            if inner == 1:
                _softmax_of_row(scores, offset, extent, totals[:_ABREAST], results, target + offset)
                continue
            for column in range(0, inner, _COLUMNS):
                count = min(_COLUMNS, inner - column)
                first, to = offset + column, target + offset + column
                _softmax_of_columns(scores, first, extent, inner, maxima[:count], totals[:count], results, to)


@inner
def _argmax_of_columns(
    scores: np.ndarray, first: int, extent: int, inner: int, best: np.ndarray, results: np.ndarray, target: int
) -> bool:
    """Find the highest score of each of ``best.size`` adjacent columns; return whether a score is NaN."""
    unordered, found = np.int32(0), results[target : target + best.size]
    best[:] = -np.inf
    found[:] = 0
    for number in range(extent):
        place = first + number * inner
        row = scores[place : place + best.size]
        for i in range(best.size):
            score = row[i]
            unordered = np.int32(unordered | np.int32(score != score))
            is_better = score > best[i]
            best[i] = score if is_better else best[i]
            found[i] = np.int32(number) if is_better else found[i]
    return unordered != 0


@inner
def _argmax_of_row(scores: np.ndarray, first: int, extent: int) -> int:
    """Return the index of the highest of contiguous scores, the first if several are equal; -1 if a score is NaN."""
    unordered, row = np.int32(0), scores[first : first + extent]
    for i in range(extent):
        unordered = np.int32(unordered | np.int32(row[i] != row[i]))
    if unordered:
        return -1
    best, index = _largest_of_row(scores, first, extent), 0
    while not _is_among(best, row[index : index + _ABREAST]):
        index += _ABREAST
    while row[index] != best:
        index += 1
    return index


@inner
def _is_among(score: np.float32, row: np.ndarray) -> bool:
    found = np.int32(0)
    for i in range(row.size):
        found = np.int32(found | np.int32(row[i] == score))
    return found != 0


@kernel
def argmax(places: np.ndarray, begin: int, end: int, results: np.ndarray, faults: np.ndarray) -> None:
    """Fill ``results``, int32, with the index of the highest score along the dimension, the first if several are equal.

    Args:
        faults: output, must be filled with -1: the position of the first NaN in each sample that has one.
    """
    best = np.empty(_COLUMNS, np.float32)
    for sample in range(begin, end):
        start, target, outer, extent, inner = places[sample]
        scores = elements_at(start, outer * extent * inner, np.float32(0))
        for block in range(outer):
            first, to = block * extent * inner, target + block * inner
            unordered = False
            if inner == 1:
                index = _argmax_of_row(scores, first, extent)
                results[to] = index
                unordered = index < 0
            else:
                for column in range(0, inner, _COLUMNS):
                    own = best[: min(_COLUMNS, inner - column)]
                    unordered |= _argmax_of_columns(scores, first + column, extent, inner, own, results, to + column)
            if unordered:
                place = first
                while scores[place] == scores[place]:
                    place += 1
                faults[sample] = place
                break


@kernel
def top_k(
    places: np.ndarray,
    count: int,
    begin: int,
    end: int,
    values: np.ndarray,
    indices: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Find the highest scores along the dimension, in descending order; equal scores stay in order.

    Args:
        count: number of scores to find.
        values: output, float32: the scores.
        indices: output, int32: the index of each score along the dimension.
        faults: output, must be filled with -1: the position of the first NaN in each sample that has one.
    """
    best, where = np.empty(count, np.float32), np.empty(count, np.int32)
    for sample in range(begin, end):
        start, target, outer, extent, inner = places[sample]
        scores = elements_at(start, outer * extent * inner, np.float32(0))
        for block in range(outer):
            for i in range(inner):
                found = 0
                for row in range(extent):
                    place = (block * extent + row) * inner + i
                    score = scores[place]
                    if score != score:
                        known = faults[sample]
                        faults[sample] = place if known < 0 else min(known, place)
                        break
                    if found == count and not score > best[count - 1]:
                        continue
                    found = min(found + 1, count)
                    at = found - 1
                    while at > 0 and score > best[at - 1]:
                        best[at], where[at] = best[at - 1], where[at - 1]
                        at -= 1
                    best[at], where[at] = score, row
                for rank in range(found):
                    to = target + (block * count + rank) * inner + i
                    values[to], indices[to] = best[rank], where[rank]
