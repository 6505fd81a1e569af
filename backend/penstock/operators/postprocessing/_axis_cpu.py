"""Along one dimension of scores: softmax, the highest one, the highest ones.

All take the scores of all samples, float32 of shape (n,), and ``places``, int64 with a row for each sample: where its scores and its
results begin, and the extents before, along and after the dimension. ``begin`` and ``end`` are the samples to compute.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.operators.postprocessing._exponential import (
    FIFTH,
    FOURTH,
    LN2,
    LOG2_E,
    LOWEST_EXPONENT,
    SEVENTH,
    SIXTH,
    THIRD,
)


@inner
def exponential(exponent: float) -> np.float32:
    """Return the exponential of a number up to 0: a power of two, times the Taylor series of what is left, of which the eighth term is below
    6e-9. What is below 2**-125 is 0.
    """
    whole = math.floor(exponent * LOG2_E + 0.5)
    rest = np.float32(exponent - whole * LN2)
    series = SEVENTH
    series = series * rest + SIXTH
    series = series * rest + FIFTH
    series = series * rest + FOURTH
    series = series * rest + THIRD
    series = series * rest + np.float32(0.5)
    series = series * rest + np.float32(1)
    series = series * rest + np.float32(1)
    is_tiny = exponent < LOWEST_EXPONENT
    power = np.int32(0 if is_tiny else whole)
    value = series * np.int32((power + 127) << 23).view(np.float32)
    return np.float32(0) if is_tiny else value


@kernel
def softmax(scores: np.ndarray, places: np.ndarray, begin: int, end: int, results: np.ndarray) -> None:
    """Fill ``results``, float32 like the scores, with exponentials that sum to 1 along the dimension."""
    for sample in range(begin, end):
        start, target, outer, extent, inner_extent = places[sample]
        for block in range(outer):
            first = block * extent * inner_extent
            source = scores[start + first : start + first + extent * inner_extent]
            out = results[target + first : target + first + extent * inner_extent]
            if inner_extent == 1:
                _softmax_of_line(source, out)
            else:
                _softmax_of_lines(source.reshape(extent, inner_extent), out.reshape(extent, inner_extent))


@inner
def _softmax_of_line(source: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` from scores that lie one after the other."""
    best, total = np.float64(source[0]), 0.0
    for i in range(1, source.size):
        best = max(best, np.float64(source[i]))
    for i in range(source.size):
        out[i] = exponential(np.float64(source[i]) - best)
    for i in range(source.size):
        total += np.float64(out[i])
    share = 1 / total
    for i in range(source.size):
        out[i] = np.float32(out[i] * share)


@inner
def _softmax_of_lines(source: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` from scores of shape (extent, lines)."""
    extent, lines = source.shape
    best, total = np.empty(lines, np.float32), np.zeros(lines, np.float64)
    best[:] = source[0]
    for row in range(1, extent):
        for i in range(lines):
            best[i] = max(best[i], source[row, i])
    for row in range(extent):
        for i in range(lines):
            value = exponential(np.float64(source[row, i]) - np.float64(best[i]))
            total[i] += np.float64(value)
            out[row, i] = value
    for i in range(lines):
        total[i] = 1 / total[i]
    for row in range(extent):
        for i in range(lines):
            out[row, i] = np.float32(out[row, i] * total[i])


@kernel
def argmax(
    scores: np.ndarray, places: np.ndarray, begin: int, end: int, results: np.ndarray, faults: np.ndarray
) -> None:
    """Fill ``results``, int32, with the index of the highest score, of equal ones the first.

    Args:
        faults: output: the position of the first NaN in each sample that has one; -1 before.
    """
    for sample in range(begin, end):
        start, target, outer, extent, lines = places[sample]
        best = np.empty(lines, np.float32)
        for block in range(outer):
            first, to = start + block * extent * lines, target + block * lines
            rows = scores[first : first + extent * lines].reshape(extent, lines)
            if _find_highest(rows, best, results[to : to + lines]):
                place = first
                while scores[place] == scores[place]:
                    place += 1
                faults[sample] = place - start
                break


@inner
def _find_highest(rows: np.ndarray, best: np.ndarray, where: np.ndarray) -> bool:
    """Fill ``best`` and ``where`` with the highest score of each column and its row; return whether any score is NaN."""
    extent, lines = rows.shape
    unordered = np.int32(0)
    if lines == 1:
        highest, at = rows[0, 0], np.int32(0)
        for row in range(extent):
            score = rows[row, 0]
            unordered += np.int32(score != score)
            if score > highest:
                highest, at = score, np.int32(row)
        best[0], where[0] = highest, at
        return bool(unordered > 0)
    best[:], where[:] = rows[0], 0
    for i in range(lines):
        unordered += np.int32(rows[0, i] != rows[0, i])
    for row in range(1, extent):
        number = np.int32(row)
        for i in range(lines):
            score, known = rows[row, i], best[i]
            unordered += np.int32(score != score)
            best[i] = score if score > known else known
            where[i] = number if score > known else where[i]
    return bool(unordered > 0)


@kernel
def top_k(
    scores: np.ndarray,
    places: np.ndarray,
    count: int,
    begin: int,
    end: int,
    values: np.ndarray,
    indices: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Find the highest scores, the highest first, of equal ones the first.

    Args:
        count: number of scores to find.
        values: float32; output.
        indices: int32; output: along the dimension.
        faults: output: the position of the first NaN in each sample that has one; -1 before.
    """
    best, where = np.empty(count, np.float32), np.empty(count, np.int32)
    for sample in range(begin, end):
        start, target, outer, extent, inner = places[sample]
        for block in range(outer):
            for i in range(inner):
                found = 0
                for row in range(extent):
                    place = start + (block * extent + row) * inner + i
                    score = scores[place]
                    if score != score:
                        known = faults[sample]
                        faults[sample] = place - start if known < 0 else min(known, place - start)
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
