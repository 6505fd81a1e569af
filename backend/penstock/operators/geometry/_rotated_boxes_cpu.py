"""Rotating bounding boxes."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def rotate_boxes(
    boxes: np.ndarray,
    firsts: np.ndarray,
    extents: np.ndarray,
    canvases: np.ndarray,
    rotations: np.ndarray,
    turns: np.ndarray,
    normalized: bool,
    with_sizes: bool,
    expansion: float,
    threshold: float,
    rotated: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Rotates the boxes of each sample and drops those that leave the canvas; returns how many are left in all.

    Args:
        boxes: of all samples, float32 of shape (n, 4).
        firsts: the row of each sample's first box, and at last n.
        extents, canvases: width and height of each image, and of the rotated one; float64.
        rotations: 2x2, float64, one for each sample.
        turns: the absolute cosine and sine of each angle, in single precision.
        normalized: coordinates are fractions of the image's extents, and of the canvas.
        with_sizes: a box is a corner and its extents, rather than two corners.
        expansion: the fraction kept of the difference between the enclosing box and the original size.
        threshold: the least fraction of a box that has to be on the canvas.
        rotated: like the boxes; output.
        indices: int32, n of them; output: of the boxes left, among those of their sample.
        counts: output: how many are left of each sample.
    """
    found = 0
    low, size, cut_low, cut_high = np.empty(2), np.empty(2), np.empty(2), np.empty(2)
    for i in range(len(counts)):
        before = found
        r = rotations[i]
        for row in range(firsts[i], firsts[i + 1]):
            for axis in range(2):
                scale = extents[i, axis] if normalized else 1.0
                first, second = boxes[row, axis] * scale, boxes[row, 2 + axis] * scale
                low[axis], size[axis] = first, second if with_sizes else second - first
            centre_x = low[0] + size[0] / 2 - extents[i, 0] / 2
            centre_y = low[1] + size[1] / 2 - extents[i, 1] / 2
            width, height = _turned(size[0], size[1], turns[i, 0], turns[i, 1])
            whole, rest = np.float64(1.0), np.float64(1.0)
            for axis in range(2):
                centre = centre_x * r[0, axis] + centre_y * r[1, axis] + canvases[i, axis] / 2
                enclosing = abs(size[0]) * abs(r[0, axis]) + abs(size[1]) * abs(r[1, axis])
                extent = width if axis == 0 else height
                half = (extent + (enclosing - extent) * expansion) / 2
                # In single precision, in which a line that is turned by a right angle still has no extent.
                begin, end = np.float32(centre - half), np.float32(centre + half)
                cut_low[axis] = min(max(begin, 0.0), canvases[i, axis])
                cut_high[axis] = min(max(end, 0.0), canvases[i, axis])
                whole *= end - begin
                rest *= cut_high[axis] - cut_low[axis]
            # A box of no extent has no fraction that could be on the canvas.
            if whole == 0 or not rest / whole >= threshold:
                continue
            for axis in range(2):
                scale = canvases[i, axis] if normalized else 1.0
                second = cut_high[axis] - cut_low[axis] if with_sizes else cut_high[axis]
                rotated[found, axis], rotated[found, 2 + axis] = cut_low[axis] / scale, second / scale
            indices[found] = row - firsts[i]
            found += 1
        counts[i] = found - before
    return found


@kernel
def _turned(width: float, height: float, along: np.float32, across: np.float32) -> tuple[float, float]:
    """Width and height, swapped if the rotation makes a wide box taller than wide.

    In single precision, which decides whether the box that holds the rotated one is a square.
    """
    w, h = np.float32(width), np.float32(height)
    if (w < h) != (along * w + across * h < across * w + along * h):
        return height, width
    return width, height
