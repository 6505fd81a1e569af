"""The median under a rectangular window, on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.opencv import opencv
from penstock.kernels.cpu.options import inner, kernel

# With smaller windows, selecting the median of each window takes less time than moving a histogram (for bytes), or than
# ranking all values (for other types).
_MIN_HISTOGRAM_WINDOW = 9
_MIN_RANKED_WINDOW = 15
# The counts of a column's histogram are 16-bit numbers.
_MAX_HISTOGRAM_HEIGHT = 65535
_BINS, _BINS_IN_GROUP = 256, 16
# Ranks are counted individually, in groups of 64 ranks, and in wide groups of 64 groups.
_SHIFT, _WIDE_SHIFT = 6, 12


@inner
def _middle(values: np.ndarray) -> np.generic:
    """Return the median of an odd number of values, which are reordered (Hoare's selection algorithm)."""
    low, high, middle = 0, values.size - 1, values.size // 2
    while low < high:
        pivot = values[middle]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < middle:
            low = i
        if middle < i:
            high = j
    return values[middle]


@kernel
def _median(source: np.ndarray, width: int, height: int, target: np.ndarray) -> None:
    """Write the median of each window to ``target``, selecting it from the window's values."""
    outer, rows, columns, channels = source.shape
    values = np.empty(width * height, source.dtype)
    for o in range(outer):
        for y in range(rows):
            for x in range(columns):
                for c in range(channels):
                    count = 0
                    for dy in range(-(height // 2), height // 2 + 1):
                        row = min(max(y + dy, 0), rows - 1)
                        for dx in range(-(width // 2), width // 2 + 1):
                            values[count] = source[o, row, min(max(x + dx, 0), columns - 1), c]
                            count += 1
                    target[o, y, x, c] = _middle(values)


@kernel
def _median_of_bytes(source: np.ndarray, width: int, height: int, target: np.ndarray) -> None:
    """Write the median of each window of bytes to ``target``, in the same time per element for windows of any size.

    Each column has a histogram, which moves down by one element per row. The window's histogram moves along a row by adding the
    histogram of one column and subtracting that of another (Perreault and Hébert, "Median Filtering in Constant Time", 2007).
    """
    outer, rows, columns, channels = source.shape
    reach_x, reach_y, middle = width // 2, height // 2, width * height // 2
    counts = np.empty((columns, _BINS), np.uint16)
    groups = np.empty((columns, _BINS // _BINS_IN_GROUP), np.uint16)
    window = np.empty(_BINS, np.int32)
    window_groups = np.empty(_BINS // _BINS_IN_GROUP, np.int32)
    for o in range(outer):
        for c in range(channels):
            counts[:] = 0
            groups[:] = 0
            for y in range(-reach_y, reach_y + 1):
                _count_row(source[o, min(max(y, 0), rows - 1), :, c], 1, counts, groups)
            for y in range(rows):
                if y > 0:
                    _count_row(source[o, max(y - 1 - reach_y, 0), :, c], -1, counts, groups)
                    _count_row(source[o, min(y + reach_y, rows - 1), :, c], 1, counts, groups)
                window[:] = 0
                window_groups[:] = 0
                for x in range(-reach_x, reach_x + 1):
                    column = min(max(x, 0), columns - 1)
                    for i in range(_BINS):
                        window[i] += counts[column, i]
                    for i in range(_BINS // _BINS_IN_GROUP):
                        window_groups[i] += groups[column, i]
                for x in range(columns):
                    if x > 0:
                        last, next = max(x - 1 - reach_x, 0), min(x + reach_x, columns - 1)
                        for i in range(_BINS):
                            window[i] += np.int32(counts[next, i]) - np.int32(counts[last, i])
                        for i in range(_BINS // _BINS_IN_GROUP):
                            window_groups[i] += np.int32(groups[next, i]) - np.int32(groups[last, i])
                    below, group = 0, 0
                    while below + window_groups[group] <= middle:
                        below += window_groups[group]
                        group += 1
                    value = group * _BINS_IN_GROUP
                    while below + window[value] <= middle:
                        below += window[value]
                        value += 1
                    target[o, y, x, c] = value


@inner
def _count_row(row: np.ndarray, change: int, counts: np.ndarray, groups: np.ndarray) -> None:
    for x in range(row.size):
        value = row[x]
        counts[x, value] += np.uint16(change)
        groups[x, value // _BINS_IN_GROUP] += np.uint16(change)


@kernel
def _median_of_ranks(ranks: np.ndarray, width: int, height: int, places: np.ndarray) -> None:
    """Find the median of each window from ranks, in a time per element that is proportional to the window's height.

    Args:
        ranks: the rank of each element of an image, all different.
        width, height: the width and height of the window; odd.
        places: an array to fill with the rank of each window's median.
    """
    rows, columns = ranks.shape
    reach_x, reach_y, middle = width // 2, height // 2, width * height // 2
    counts = np.zeros(ranks.size, np.int32)
    groups = np.zeros((ranks.size >> _SHIFT) + 1, np.int32)
    wide = np.zeros((ranks.size >> _WIDE_SHIFT) + 1, np.int32)
    for y in range(rows):
        counts[:] = 0
        groups[:] = 0
        wide[:] = 0
        for x in range(-reach_x, reach_x + 1):
            for dy in range(-reach_y, reach_y + 1):
                rank = ranks[min(max(y + dy, 0), rows - 1), min(max(x, 0), columns - 1)]
                counts[rank] += 1
                groups[rank >> _SHIFT] += 1
                wide[rank >> _WIDE_SHIFT] += 1
        # Medians of adjacent windows are close, so each search starts in the wide group of the previous median; `below` counts the
        # window's elements in lower groups.
        start, below = 0, 0
        for x in range(columns):
            if x > 0:
                last, next = max(x - 1 - reach_x, 0), min(x + reach_x, columns - 1)
                for dy in range(-reach_y, reach_y + 1):
                    row = min(max(y + dy, 0), rows - 1)
                    leaving, entering = ranks[row, last], ranks[row, next]
                    counts[leaving] -= 1
                    groups[leaving >> _SHIFT] -= 1
                    wide[leaving >> _WIDE_SHIFT] -= 1
                    counts[entering] += 1
                    groups[entering >> _SHIFT] += 1
                    wide[entering >> _WIDE_SHIFT] += 1
                    below += (entering >> _WIDE_SHIFT < start) - (leaving >> _WIDE_SHIFT < start)
            while below > middle:
                start -= 1
                below -= wide[start]
            while below + wide[start] <= middle:
                below += wide[start]
                start += 1
            found, group = below, start << (_WIDE_SHIFT - _SHIFT)
            while found + groups[group] <= middle:
                found += groups[group]
                group += 1
            rank = group << _SHIFT
            while found + counts[rank] <= middle:
                found += counts[rank]
                rank += 1
            places[y, x] = rank


def median_filter(source: np.ndarray, width: int, height: int, target: np.ndarray) -> None:
    """Set each element of ``target`` to the median of a window around that element of ``source``; the border repeats the edge.

    Args:
        source: an array of shape (outer, H, W, C), contiguous.
        width, height: the width and height of the window; odd.
        target: an array of the same shape and dtype as ``source``.
    """
    if width == height and source.dtype in _SMALL_WINDOWS and (width in (3, 5) or source.dtype == np.uint8):
        _median_by_opencv(source, width, target)
    elif source.dtype == np.uint8 and width * height >= _MIN_HISTOGRAM_WINDOW and height <= _MAX_HISTOGRAM_HEIGHT:
        _median_of_bytes(source, width, height, target)
    elif source.dtype != np.uint8 and width * height >= _MIN_RANKED_WINDOW:
        _median_by_ranks(source, width, height, target)
    else:
        _median(source, width, height, target)


# The types for which OpenCV has vectorized sorting networks for windows of 3x3 and 5x5.
_SMALL_WINDOWS = (np.uint8, np.uint16, np.int16, np.float32)


def _median_by_opencv(source: np.ndarray, size: int, target: np.ndarray) -> None:
    channels = source.shape[-1]
    for image, out in zip(source, target):
        if channels in (1, 3, 4):
            out[...] = opencv().medianBlur(image, size).reshape(out.shape)
            continue
        for channel in range(channels):
            out[..., channel] = opencv().medianBlur(np.ascontiguousarray(image[..., channel]), size)


def _median_by_ranks(source: np.ndarray, width: int, height: int, target: np.ndarray) -> None:
    _, rows, columns, channels = source.shape
    ranks, places = np.empty((rows, columns), np.int32), np.empty((rows, columns), np.int32)
    for image, out in zip(source, target):
        for channel in range(channels):
            values = image[..., channel].ravel()
            order = values.argsort(kind="stable")
            ranks.reshape(-1)[order] = np.arange(values.size, dtype=np.int32)
            _median_of_ranks(ranks, width, height, places)
            out[..., channel] = values[order[places]]
