"""Along one dimension of scores: softmax, the highest one, the highest ones.

All take the scores of all samples, float32 of shape (n,), and ``places``, int64 with a row for each sample: where its scores and its
results begin, and the extents before, along and after the dimension. ``begin`` and ``end`` are the samples to compute.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def softmax(scores: np.ndarray, places: np.ndarray, begin: int, end: int, results: np.ndarray) -> None:
    """Fill ``results``, float32 like the scores, with exponentials that sum to 1 along the dimension."""
    for sample in range(begin, end):
        start, target, outer, extent, inner = places[sample]
        best, total = np.empty(inner, np.float32), np.empty(inner, np.float64)
        for block in range(outer):
            first, shift = start + block * extent * inner, target - start
            best[:] = scores[first : first + inner]
            for row in range(1, extent):
                for i in range(inner):
                    best[i] = max(best[i], scores[first + row * inner + i])
            total[:] = 0
            for row in range(extent):
                for i in range(inner):
                    place = first + row * inner + i
                    value = math.exp(np.float64(scores[place]) - np.float64(best[i]))
                    total[i] += value
                    results[place + shift] = value
            for row in range(extent):
                for i in range(inner):
                    place = first + row * inner + i + shift
                    results[place] = results[place] / total[i]


@kernel
def argmax(
    scores: np.ndarray, places: np.ndarray, begin: int, end: int, results: np.ndarray, faults: np.ndarray
) -> None:
    """Fill ``results``, int32, with the index of the highest score, of equal ones the first.

    Args:
        faults: output: the position of the first NaN in each sample that has one; -1 before.
    """
    for sample in range(begin, end):
        start, target, outer, extent, inner = places[sample]
        best = np.empty(inner, np.float32)
        for block in range(outer):
            first, to = start + block * extent * inner, target + block * inner
            unordered = 0
            for i in range(inner):
                best[i] = scores[first + i]
                unordered += best[i] != best[i]
                results[to + i] = 0
            for row in range(1, extent):
                for i in range(inner):
                    score = scores[first + row * inner + i]
                    unordered += score != score
                    is_better = score > best[i]
                    best[i] = score if is_better else best[i]
                    results[to + i] = np.int32(row) if is_better else results[to + i]
            if unordered:
                place = first
                while scores[place] == scores[place]:
                    place += 1
                faults[sample] = place - start
                break


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
