"""Random windows of images, for crops."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import njit
from penstock.kernels.cpu.philox import canonical, draw_below
from penstock.kernels.random_keys import Key


@njit(nogil=True, error_model="numpy")
def _whole_extent(extent: np.float32) -> int:
    """Return an extent rounded down, but at least 1. Infinite extents become 1, as in DALI on x86; on other processors, DALI's results
    differ.
    """
    return int(extent) if np.float32(1) <= extent < np.float32(1 << 31) else 1


@njit(nogil=True, error_model="numpy")  # aspect ratios may be 0
def crop_window(
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    height: int,
    width: int,
    area: tuple[np.float32, np.float32],
    ratio: tuple[np.float32, np.float32],
    attempts: int,
) -> tuple[int, int, int, int]:
    """Return a window (y, x, height, width) with random area, aspect ratio and position.

    Up to ``attempts`` pairs of area and aspect ratio are drawn. If none of them fits in the image, the result is the largest window
    whose aspect ratio is in range.
    """
    n = start
    one = np.float32(1)
    widest = _whole_extent(np.float32(height) * ratio[1])
    highest = _whole_extent(np.float32(width) * (one / ratio[0]))
    image_area = np.float32(height * width)
    smallest = image_area * area[0]
    log_low, log_high = np.float32(math.log(ratio[0])), np.float32(math.log(ratio[1]))
    h, w = height, width
    if np.float32(height * widest) < smallest:
        w = widest
    elif np.float32(width * highest) < smallest:
        h = highest
    else:
        found = False
        for _ in range(attempts):
            u, n = canonical(key, stream, n, one)
            target = (u * (area[1] - area[0]) + area[0]) * image_area
            u, n = canonical(key, stream, n, one)
            aspect = np.float32(math.exp(u * (log_high - log_low) + log_low))
            w = max(1, converted(np.float32(math.sqrt(target * aspect)), np.int64(0)))
            h = max(1, converted(np.float32(math.sqrt(target / aspect)), np.int64(0)))
            aspect = np.float32(w) / np.float32(h)
            if w <= width and h <= height and ratio[0] <= aspect <= ratio[1]:
                found = True
                break
        if not found:
            h, w = height, width
            aspect = np.float32(width) / np.float32(height)
            if aspect > ratio[1]:
                w = widest
            elif aspect < ratio[0]:
                h = highest
            scale = np.float32(math.sqrt(min(one, area[1] * image_area / np.float32(w * h))))
            h, w = _whole_extent(np.float32(h) * scale), _whole_extent(np.float32(w) * scale)
    y, n = draw_below(key, stream, n, np.uint64(height - h + 1))
    x, n = draw_below(key, stream, n, np.uint64(width - w + 1))
    return int(y), int(x), h, w


@njit(nogil=True)
def crop_windows(
    key: Key,
    streams: np.ndarray,
    start: np.uint64,
    extents: np.ndarray,
    area: tuple[np.float32, np.float32],
    ratio: tuple[np.float32, np.float32],
    attempts: int,
    windows: np.ndarray,
) -> None:
    """Draw a random window of each image; see :func:`crop_window`."""
    for i in range(len(streams)):
        y, x, h, w = crop_window(key, streams[i], start, extents[i, 0], extents[i, 1], area, ratio, attempts)
        windows[i, 0], windows[i, 1], windows[i, 2], windows[i, 3] = y, x, h, w
