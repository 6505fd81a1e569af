"""Rotating bounding boxes with each step in single precision as in DALI, because the last bit can decide whether a box is empty."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

_HALF = np.float32(0.5)


@kernel
def rotate_boxes(
    boxes: np.ndarray,
    firsts: np.ndarray,
    extents: np.ndarray,
    canvases: np.ndarray,
    radians: np.ndarray,
    normalized: bool,
    with_sizes: bool,
    expansion: np.float32,
    threshold: np.float32,
    rotated: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Rotate the boxes of each sample and drop those that leave the canvas; return the number of remaining boxes.

    All arrays of floating-point numbers are float32.

    Args:
        boxes: the boxes of all samples, of shape (n, 4).
        firsts: the row of each sample's first box, followed by n.
        extents, canvases: width and height of each image, and of each canvas (the rotated image), of shape (samples, 2).
        radians: the angle of each sample.
        normalized: whether coordinates are fractions of the extents of the image and, in the output, of the canvas.
        with_sizes: whether a box consists of a corner and its extents, rather than two corners.
        expansion: how much boxes grow, from 0 (the size of the original box) to 1 (the size of the box that encloses the rotated box).
        threshold: boxes of which less than this fraction is on the canvas are dropped.
        rotated: output: the remaining boxes, in the form of ``boxes``.
        indices: output, int32 of shape (n,): the index of each remaining box among the boxes of its sample.
        counts: output: the number of remaining boxes of each sample.
    """
    found = 0
    old = np.empty((2, 2), np.float32)
    for i in range(len(counts)):
        before = found
        cosine, sine = np.float32(math.cos(radians[i])), np.float32(math.sin(radians[i]))
        wide, high = canvases[i, 0], canvases[i, 1]
        for row in range(firsts[i], firsts[i + 1]):
            for axis in range(2):
                low, second = boxes[row, axis], boxes[row, 2 + axis]
                old[0, axis] = _centred(low, extents[i, axis], normalized)
                old[1, axis] = _centred(low + second if with_sizes else second, extents[i, axis], normalized)
            left, top, right, bottom = _enclosing(old, cosine, sine, wide * _HALF, high * _HALF)
            if expansion < np.float32(1):
                width, height = old[1, 0] - old[0, 0], old[1, 1] - old[0, 1]
                if (width < height) != (right - left < bottom - top):
                    width, height = height, width
                shorter = (np.float32(1) - expansion) * ((right - left - width) * _HALF)
                lower = (np.float32(1) - expansion) * ((bottom - top - height) * _HALF)
                left, top, right, bottom = left + shorter, top + lower, right - shorter, bottom - lower
            whole = (right - left) * (bottom - top)
            left, right = _clipped(left, wide), _clipped(right, wide)
            top, bottom = _clipped(top, high), _clipped(bottom, high)
            # For a box without area, the fraction is NaN: such a box is dropped, too.
            if not (right - left) * (bottom - top) / whole >= threshold:
                continue
            if with_sizes:
                right, bottom = right - left, bottom - top
            if normalized:
                across, down = np.float32(1) / wide, np.float32(1) / high
                left, top, right, bottom = left * across, top * down, right * across, bottom * down
            rotated[found, 0], rotated[found, 1], rotated[found, 2], rotated[found, 3] = left, top, right, bottom
            indices[found] = row - firsts[i]
            found += 1
        counts[i] = found - before
    return found


@inner
def _centred(value: np.float32, extent: np.float32, normalized: bool) -> np.float32:
    """Return a coordinate relative to the middle of the image, in pixels."""
    return (value - _HALF) * extent if normalized else value - extent * _HALF


@inner
def _clipped(value: np.float32, extent: np.float32) -> np.float32:
    return np.float32(0) if value < np.float32(0) else (extent if extent < value else value)


@inner
def _enclosing(
    corners: np.ndarray, cosine: np.float32, sine: np.float32, middle_x: np.float32, middle_y: np.float32
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return left, top, right and bottom of the box that encloses a rotated box.

    Args:
        corners: two opposite corners of the box before the rotation, relative to the middle of the image.
        cosine, sine: cosine and sine of the angle.
        middle_x, middle_y: the middle of the canvas.
    """
    left = top = np.float32(np.inf)
    right = bottom = np.float32(-np.inf)
    for corner in range(4):
        x, y = corners[corner & 1, 0], corners[corner >> 1, 1]
        turned_x = (x * cosine + y * sine) + middle_x
        turned_y = (y * cosine - x * sine) + middle_y
        left, right = min(left, turned_x), max(right, turned_x)
        top, bottom = min(top, turned_y), max(bottom, turned_y)
    return left, top, right, bottom
