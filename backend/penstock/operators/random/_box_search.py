"""The search for a window that overlaps boxes enough, compiled so that it runs without the GIL."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.philox import canonical, draw_below
from penstock.kernels.random_keys import Key

__all__ = ["Rules", "search_all"]

_NONE: Final = np.float32(0)
_HALF: Final = np.float32(0.5)


class Rules(NamedTuple):
    """The conditions for a window.

    Attributes:
        thresholds: the thresholds of the overlap, of which each round draws one; float32.
        whole: whether a round may also draw the whole image instead of a threshold.
        attempts: the number of windows that a round draws.
        most: the largest number of windows of all rounds; -1: no limit.
        first: use the first suitable window of a round instead of the last.
        union: divide the intersection by the union of box and window, instead of by the box.
        every: require that every box overlaps enough, instead of one box.
        prune: a box remains if at least this fraction of it is inside the window; negative: if its centre is.
        scaling: the smallest and the largest extent, in fractions of the image; float32.
    """

    thresholds: np.ndarray
    whole: bool
    attempts: int
    most: int
    first: bool
    union: bool
    every: bool
    prune: np.float32
    scaling: np.ndarray


@kernel
def search_all(
    boxes: np.ndarray,
    firsts: np.ndarray,
    rules: Rules,
    ratios: np.ndarray,
    crops: np.ndarray,
    sizes: np.ndarray,
    key: Key,
    streams: np.ndarray,
    start: np.uint64,
    windows: np.ndarray,
    inside: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
    tries: np.ndarray,
    best: np.ndarray,
) -> int:
    """Search for a window for each sample; return the number of boxes that remain in all samples.

    Args:
        boxes: the boxes of all samples, float32 of shape (n, 2 * ndim): starts, then ends, in fractions of the image.
        firsts: the row of each sample's first box, followed by n.
        rules: the conditions for a window.
        ratios: the range of the aspect ratio for each pair of axes, float32 of shape (pairs, 2).
        crops: the windows' extents in pixels, a row for each sample or one for all; without columns: draw the extents.
        sizes: the images' extents in pixels, in rows like ``crops``; may be without columns if ``crops`` is.
        key, streams, start: the random streams.
        windows: float32 of shape (samples, 2 * ndim), zeros; output: starts, then ends, in fractions of the image.
        inside: of the type and shape of ``boxes``; output: the remaining boxes, clipped to their window, in fractions of the window.
        indices: int32 of shape (n,); output: the indices of the remaining boxes among the boxes of their sample.
        counts: output: the number of remaining boxes of each sample.
        tries: output: for each sample, 0 if its window meets the conditions; otherwise the number of windows drawn, of which the best is
            returned.
        best: output: the overlap of each returned window.
    """
    found = 0
    chosen = np.empty(len(boxes), np.bool_)
    for i in range(len(streams)):
        own = boxes[firsts[i] : firsts[i + 1]]
        kept, window = chosen[: len(own)], windows[i]
        kept[:] = False
        crop, size = crops[min(i, len(crops) - 1)], sizes[min(i, len(sizes) - 1)]
        met, drawn, best[i] = search(own, rules, ratios, crop, size, key, streams[i], start, window, kept)
        tries[i] = 0 if met else drawn
        before = found
        for number in range(len(own)):
            if kept[number]:
                place(own[number], window, inside[found])
                indices[found] = number
                found += 1
        counts[i] = found - before
    return found


@kernel
def search(
    boxes: np.ndarray,
    rules: Rules,
    ratios: np.ndarray,
    crop: np.ndarray,
    size: np.ndarray,
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    window: np.ndarray,
    kept: np.ndarray,
) -> tuple[bool, int, np.float32]:
    """Draw windows until one overlaps the boxes enough; return whether one does, how many were drawn, and the window's overlap.

    Args:
        boxes: float32 of shape (n, 2 * ndim): starts, then ends, in fractions of the image.
        rules: the conditions for the window.
        ratios: the range of the aspect ratio for each pair of axes, float32 of shape (pairs, 2).
        crop: the window's extents in pixels; empty: draw the extents.
        size: the image's extents in pixels; may be empty if ``crop`` is.
        key, stream, start: the random stream.
        window: float32 of shape (2 * ndim,), zeros; output: the window, or the best one if none overlaps enough.
        kept: bool of shape (n,), False; output: which boxes remain in the window.
    """
    n, tries = start, 0
    best = np.float32(-1)
    drawn = np.empty_like(window)
    options = len(rules.thresholds) + (1 if rules.whole else 0)
    while rules.most < 0 or tries < rules.most:
        choice, n = draw_below(key, stream, n, np.uint64(options))
        if choice == len(rules.thresholds):
            window[: len(window) // 2], window[len(window) // 2 :], kept[:] = 0, 1, True
            return True, tries, best
        threshold = rules.thresholds[choice]
        found = False
        for _ in range(rules.attempts):
            tries += 1
            if len(crop):
                n = draw_place(crop, size, key, stream, n, drawn)
            else:
                fits, n = draw_window(rules.scaling, ratios, size, key, stream, n, drawn)
                if not fits:
                    continue
            overlap = overlap_with(boxes, drawn, rules.union, rules.every)
            if overlap < threshold and overlap <= best:
                continue
            window[:], best = drawn, overlap
            count = keep(boxes, drawn, rules.prune, kept)
            if overlap >= threshold:
                found = len(boxes) == 0 or count > 0
            if found and rules.first:
                return True, tries, best
        if found:
            return True, tries, best
    return False, tries, best


@inner
def draw_place(
    crop: np.ndarray, size: np.ndarray, key: Key, stream: np.uint64, n: np.uint64, window: np.ndarray
) -> np.uint64:
    """Fill ``window`` with one of fixed extents, ``crop``, at a random position; return the random stream's position after the draws."""
    ndim = len(crop)
    for axis in range(ndim):
        room = size[axis] - crop[axis]
        offset, n = draw_below(key, stream, n, np.uint64(abs(room) + 1))
        whole = np.float32(size[axis])
        window[axis] = np.float32(min(room, 0) + np.int64(offset)) / whole
        window[ndim + axis] = window[axis] + np.float32(crop[axis]) / whole
    return n


@inner
def draw_window(
    scaling: np.ndarray,
    ratios: np.ndarray,
    size: np.ndarray,
    key: Key,
    stream: np.uint64,
    n: np.uint64,
    window: np.ndarray,
) -> tuple[bool, np.uint64]:
    """Fill ``window`` with one of random extents and position; return whether its aspect ratios are in their ranges, and the random
    stream's position after the draws.
    """
    ndim = len(window) // 2
    low, range_ = scaling[0], scaling[1] - scaling[0]
    for axis in range(ndim):
        unit, n = canonical(key, stream, n, _NONE)
        window[ndim + axis] = unit * range_ + low
    if not adjust(window, ratios, size):
        return False, n
    for axis in range(ndim):
        unit, n = canonical(key, stream, n, _NONE)
        extent = window[ndim + axis]
        window[axis] = unit * (np.float32(1) - extent)
        window[ndim + axis] = window[axis] + extent
    return True, n


@inner
def adjust(window: np.ndarray, ratios: np.ndarray, size: np.ndarray) -> bool:
    """Adjust the extents, the second half of ``window``, to aspect ratios whose range is a single number. Return whether the other ratios
    are in their ranges. The first half of ``window`` is overwritten.
    """
    ndim = len(window) // 2
    largest = _NONE
    for axis in range(ndim):
        pixels = window[ndim + axis] * np.float32(size[axis]) if len(size) else window[ndim + axis]
        window[axis], largest = pixels, max(largest, pixels)
    fixed, pair = False, 0
    for one in range(ndim):
        for other in range(one + 1, ndim):
            low, high = ratios[pair, 0], ratios[pair, 1]
            pair += 1
            if low == high:
                fixed = True
                window[one] = min(window[one], window[other] * low)
                window[other] = min(window[other], window[one] / low)
            elif not low <= window[one] / window[other] <= high:
                return False
    if fixed:
        now = _NONE
        for axis in range(ndim):
            now = max(now, window[axis])
        for axis in range(ndim):
            extent = window[axis] * largest / now
            window[ndim + axis] = extent / np.float32(size[axis]) if len(size) else extent
    return True


@inner
def shared_with(boxes: np.ndarray, i: int, window: np.ndarray) -> np.float32:
    """Return the area (or volume) of the part of box ``i`` that lies in the window."""
    ndim = boxes.shape[1] // 2
    shared = np.float32(1)
    for axis in range(ndim):
        shared *= max(min(boxes[i, ndim + axis], window[ndim + axis]) - max(boxes[i, axis], window[axis]), _NONE)
    return shared


@kernel
def volume(boxes: np.ndarray, i: int) -> np.float32:
    """Return the area (or volume) of box ``i``."""
    ndim = boxes.shape[1] // 2
    whole = np.float32(1)
    for axis in range(ndim):
        whole *= boxes[i, ndim + axis] - boxes[i, axis]
    return whole


@inner
def share_inside(boxes: np.ndarray, i: int, window: np.ndarray) -> np.float32:
    """Return the fraction of box ``i`` that lies in the window; 0 for an empty box."""
    whole = volume(boxes, i)
    return shared_with(boxes, i, window) / whole if whole > 0 else _NONE


@inner
def overlap_with(boxes: np.ndarray, window: np.ndarray, union: bool, every: bool) -> np.float32:
    """Return the overlap of the window with the boxes: the smallest one with ``every``, otherwise the largest one; 1 without boxes."""
    if len(boxes) == 0:
        return np.float32(1)
    smallest, largest = np.float32(np.inf), np.float32(-np.inf)
    ndim = len(window) // 2
    whole = np.float32(1)
    for axis in range(ndim):
        whole *= window[ndim + axis] - window[axis]
    for i in range(len(boxes)):
        if union:
            shared = shared_with(boxes, i, window)
            overlap = shared / (volume(boxes, i) + whole - shared) if shared > 0 else _NONE
        else:
            overlap = share_inside(boxes, i, window)
        smallest, largest = min(smallest, overlap), max(largest, overlap)
    return smallest if every else largest


@kernel
def keep(boxes: np.ndarray, window: np.ndarray, prune: np.float32, kept: np.ndarray) -> int:
    """Record in ``kept`` which boxes remain in the window; return how many remain."""
    ndim, count = len(window) // 2, 0
    for i in range(len(boxes)):
        if prune >= 0:
            inside = bool(shared_with(boxes, i, window) > 0 and share_inside(boxes, i, window) >= prune)
        else:
            inside = True
            for axis in range(ndim):
                centre = (boxes[i, axis] + boxes[i, ndim + axis]) * _HALF
                inside = bool(inside and window[axis] <= centre < window[ndim + axis])
        kept[i] = inside
        count += int(inside)
    return count


@kernel
def place(box: np.ndarray, window: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` with a box clipped to the window, in fractions of the window: starts, then ends."""
    ndim = len(window) // 2
    for axis in range(ndim):
        anchor, end = window[axis], window[ndim + axis]
        extent = end - anchor
        first = (max(box[axis], anchor) - anchor) / extent
        last = (min(box[ndim + axis], end) - anchor) / extent
        out[axis] = min(max(first, _NONE), np.float32(1))
        out[ndim + axis] = min(max(last, _NONE), np.float32(1))
