"""Boxes from what detectors predict of them."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel


@inner
def _store(
    centre_x: float, centre_y: float, wide: float, high: float, geometry: np.ndarray, boxes: np.ndarray, row: int
) -> None:
    """Writes a box, given by its centre and extents, as corners in the coordinates of the original image."""
    half = np.float32(0.5)
    left, top = centre_x - wide * half, centre_y - high * half
    right, bottom = centre_x + wide * half, centre_y + high * half
    boxes[row, 0] = min(max((left - geometry[0]) * geometry[2], geometry[4]), geometry[6])
    boxes[row, 1] = min(max((top - geometry[1]) * geometry[3], geometry[5]), geometry[7])
    boxes[row, 2] = min(max((right - geometry[0]) * geometry[2], geometry[4]), geometry[6])
    boxes[row, 3] = min(max((bottom - geometry[1]) * geometry[3], geometry[5]), geometry[7])


@kernel
def decode_centres(predicted: np.ndarray, firsts: np.ndarray, geometry: np.ndarray, boxes: np.ndarray) -> None:
    """Decodes centres and extents.

    Args:
        predicted: of all samples, float32 of shape (n, 4).
        firsts: where each sample's rows begin, and at last n.
        geometry: float32, a row for each sample: what is subtracted from x and y, what they are multiplied by, and then their least
            and greatest values.
        boxes: float32 of shape (n, 4): left, top, right, bottom; output.
    """
    for sample in range(len(geometry)):
        for row in range(firsts[sample], firsts[sample + 1]):
            x, y, wide, high = predicted[row, 0], predicted[row, 1], predicted[row, 2], predicted[row, 3]
            _store(x, y, wide, high, geometry[sample], boxes, row)


@kernel
def decode_offsets(
    predicted: np.ndarray,
    firsts: np.ndarray,
    geometry: np.ndarray,
    anchors: np.ndarray,
    anchor_step: int,
    means: np.ndarray,
    stds: np.ndarray,
    max_log: float,
    boxes: np.ndarray,
) -> None:
    """Decodes offsets from anchors; see :func:`decode_centres`.

    Args:
        anchors: float32: left, top, right, bottom, of a sample or of all.
        anchor_step: 1: each sample has anchors of its own, as many as rows; 0: all have the same.
        means, stds: float32 of shape (4,): of the offsets of x, y, width and height.
        max_log: the greatest logarithm of a box's extent relative to its anchor's.
    """
    half, most = np.float32(0.5), np.float32(max_log)
    for sample in range(len(geometry)):
        first = firsts[sample]
        for row in range(first, firsts[sample + 1]):
            anchor = row if anchor_step else row - first
            left, top = anchors[anchor, 0], anchors[anchor, 1]
            base_wide, base_high = anchors[anchor, 2] - left, anchors[anchor, 3] - top
            x = (predicted[row, 0] * stds[0] + means[0]) * base_wide + (left + half * base_wide)
            y = (predicted[row, 1] * stds[1] + means[1]) * base_high + (top + half * base_high)
            wide = np.float32(math.exp(min(predicted[row, 2] * stds[2] + means[2], most))) * base_wide
            high = np.float32(math.exp(min(predicted[row, 3] * stds[3] + means[3], most))) * base_high
            _store(x, y, wide, high, geometry[sample], boxes, row)


@kernel
def decode_cells(
    predicted: np.ndarray,
    firsts: np.ndarray,
    geometry: np.ndarray,
    extents: np.ndarray,
    strides: np.ndarray,
    boxes: np.ndarray,
) -> None:
    """Decodes offsets from the cells of grids, one for each stride; see :func:`decode_centres`.

    Args:
        extents: height and width of the network's input, int64, a row for each sample.
        strides: int64: a cell's extent in pixels.
    """
    for sample in range(len(geometry)):
        row = firsts[sample]
        for stride in strides:
            step = np.float32(stride)
            for y in range(extents[sample, 0] // stride):
                for x in range(extents[sample, 1] // stride):
                    centre_x = (predicted[row, 0] + np.float32(x)) * step
                    centre_y = (predicted[row, 1] + np.float32(y)) * step
                    wide = np.float32(math.exp(predicted[row, 2])) * step
                    high = np.float32(math.exp(predicted[row, 3])) * step
                    _store(centre_x, centre_y, wide, high, geometry[sample], boxes, row)
                    row += 1
