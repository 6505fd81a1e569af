"""The median under a rectangular window, on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.opencv import opencv
from penstock.kernels.cpu.options import inner, kernel


@inner
def _middle(values: np.ndarray) -> np.generic:
    """The median of an odd number of values, which are reordered (Hoare's selection algorithm)."""
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


def median_filter(source: np.ndarray, width: int, height: int, target: np.ndarray) -> None:
    """The median under a window around each element of ``source`` (outer, H, W, C); the border repeats the edge.

    Args:
        source: contiguous.
        width, height: of the window, odd.
        target: of the same shape and dtype.
    """
    if width == height and source.dtype in _SMALL_WINDOWS and (width in (3, 5) or source.dtype == np.uint8):
        _median_by_opencv(source, width, target)
    else:
        _median(source, width, height, target)


# The types for which OpenCV has vectorized sorting networks for windows of 3 and 5.
_SMALL_WINDOWS = (np.uint8, np.uint16, np.int16, np.float32)


def _median_by_opencv(source: np.ndarray, size: int, target: np.ndarray) -> None:
    channels = source.shape[-1]
    for image, out in zip(source, target):
        if channels in (1, 3, 4):
            out[...] = opencv().medianBlur(image, size).reshape(out.shape)
            continue
        for channel in range(channels):
            out[..., channel] = opencv().medianBlur(np.ascontiguousarray(image[..., channel]), size)
