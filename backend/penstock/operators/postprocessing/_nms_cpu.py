"""Non-maximum suppression on the CPU."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

_BOXES_AT_ONCE = 64


@kernel
def count_candidates(
    scores: np.ndarray,
    firsts: np.ndarray,
    thresholds: np.ndarray,
    begin: int,
    end: int,
    counts: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Count each sample's scores above its threshold.

    Args:
        scores: the scores of all samples, float32.
        firsts: start of each sample's scores, followed by the end of the last.
        thresholds: float32, one for each sample.
        begin, end: the range of samples to process.
        counts: output: the number of scores above the threshold in each sample.
        faults: output: the first score of each sample that is NaN; -1 if there is none.
    """
    for sample in range(begin, end):
        threshold = thresholds[sample]
        found, unordered = 0, 0
        for i in range(firsts[sample], firsts[sample + 1]):
            score = scores[i]
            found += score > threshold
            unordered += score != score
        counts[sample] = found
        faults[sample] = -1
        if unordered:
            i = firsts[sample]
            while scores[i] == scores[i]:
                i += 1
            faults[sample] = i - firsts[sample]


@inner
def _is_suppressed(
    left: float,
    top: float,
    right: float,
    bottom: float,
    area: float,
    known: np.ndarray,
    count: int,
    threshold: float,
) -> bool:
    """Return whether a box overlaps one of the first ``count`` boxes in ``known`` by more than the threshold."""
    zero = np.float32(0)
    for start in range(0, count, _BOXES_AT_ONCE):
        hits = np.int32(0)
        for i in range(start, min(start + _BOXES_AT_ONCE, count)):
            wide = max(zero, min(right, known[2, i]) - max(left, known[0, i]))
            high = max(zero, min(bottom, known[3, i]) - max(top, known[1, i]))
            shared = wide * high
            hits += np.int32((shared > zero) & (shared / (known[4, i] + area - shared) > threshold))
        if hits:
            return True
    return False


@inner
def _is_finite(box: np.ndarray, with_sizes: bool) -> bool:
    """Return whether the corners of a box are finite."""
    left, top, right, bottom = box[0], box[1], box[2], box[3]
    if with_sizes:
        right, bottom = left + right, top + bottom
    return math.isfinite(left) and math.isfinite(top) and math.isfinite(right) and math.isfinite(bottom)


@kernel
def suppress(
    boxes: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    box_firsts: np.ndarray,
    score_firsts: np.ndarray,
    classes: np.ndarray,
    candidate_firsts: np.ndarray,
    score_thresholds: np.ndarray,
    iou_thresholds: np.ndarray,
    limits: np.ndarray,
    max_candidates: int,
    class_wise: bool,
    with_sizes: bool,
    begin: int,
    end: int,
    kept: np.ndarray,
    counts: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Find the boxes of each sample that no better box suppresses, best first.

    Args:
        boxes: the boxes of all samples, float32 of shape (n, 4).
        scores: the scores of all samples, float32: one for each box, or one for each box and class.
        labels: int32 of shape (n,), or empty.
        box_firsts, score_firsts: start of each sample's boxes and scores, followed by the end of the last.
        classes: number of scores of a box, for each sample.
        candidate_firsts: start of each sample's candidates (scores above the threshold), followed by the end of the last.
        score_thresholds, iou_thresholds: float32, one for each sample.
        limits: the largest number of boxes to keep in each sample, int64.
        max_candidates: consider only this many candidates per class, those with the highest scores; 0: all.
        class_wise: whether boxes suppress only boxes of their own class.
        with_sizes: whether a box consists of a corner and its extents, rather than two corners.
        begin, end: the range of samples to process.
        kept: output, int64, one element per candidate: from ``candidate_firsts`` on, the indices of each sample's scores that
            are kept.
        counts: output: the number of boxes kept in each sample.
        faults: output: the first box of each sample that has a score above the threshold and a coordinate that is not finite;
            -1 if there is none.
    """
    for sample in range(begin, end):
        counts[sample], faults[sample] = 0, -1
        first, amount = candidate_firsts[sample], candidate_firsts[sample + 1] - candidate_firsts[sample]
        limit = min(amount, limits[sample])
        if limit <= 0:
            continue
        places, keys = np.empty(amount, np.int64), np.empty(amount, np.float32)
        threshold, found = score_thresholds[sample], 0
        per_box, box_first = classes[sample], box_firsts[sample]
        for i in range(score_firsts[sample], score_firsts[sample + 1]):
            if scores[i] > threshold:
                place = i - score_firsts[sample]
                places[found], keys[found] = place, -scores[i]
                found += 1
                if faults[sample] < 0 and not _is_finite(boxes[box_first + place // per_box], with_sizes):
                    faults[sample] = place // per_box
        if faults[sample] >= 0:
            continue
        # Sort stably, so that equal scores stay in order.
        order = np.argsort(keys, kind="mergesort")
        groups, group_count = np.zeros(amount, np.int64), 1
        if class_wise and per_box > 1:
            group_count = per_box
            for i in range(amount):
                groups[i] = places[i] % per_box
        elif class_wise and len(labels):
            own = np.empty(amount, np.int32)
            for i in range(amount):
                own[i] = labels[box_first + places[i]]
            by_label = np.argsort(own, kind="mergesort")
            for i in range(1, amount):
                group_count += own[by_label[i]] != own[by_label[i - 1]]
                groups[by_label[i]] = group_count - 1
        by_group = order
        if group_count > 1:
            by_group = order[np.argsort(groups[order], kind="mergesort")]
        # The boxes kept so far in the current group: left, top, right, bottom and area in separate rows, for vectorized comparison.
        known = np.empty((5, limit), np.float32)
        iou_threshold, group, done, seen = iou_thresholds[sample], -1, 0, 0
        is_kept = np.zeros(amount, np.bool_)
        for i in range(amount):
            candidate = by_group[i]
            if groups[candidate] != group:
                group, done, seen = groups[candidate], 0, 0
            seen += 1
            if done == limit or (max_candidates > 0 and seen > max_candidates):
                continue
            box = places[candidate] // per_box
            left, top = boxes[box_first + box, 0], boxes[box_first + box, 1]
            right, bottom = boxes[box_first + box, 2], boxes[box_first + box, 3]
            if with_sizes:
                right, bottom = left + right, top + bottom
            area = (right - left) * (bottom - top)
            if not _is_suppressed(left, top, right, bottom, area, known, done, iou_threshold):
                known[0, done], known[1, done], known[2, done], known[3, done] = left, top, right, bottom
                known[4, done] = area
                done += 1
                is_kept[candidate] = True
        done = 0
        for i in range(amount):
            if is_kept[order[i]] and done < limit:
                kept[first + done] = places[order[i]]
                done += 1
        counts[sample] = done
