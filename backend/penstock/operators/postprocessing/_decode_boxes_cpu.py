"""Decoding detectors' predictions to boxes on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.operators.postprocessing._axis_cpu import exponential
from penstock.operators.postprocessing._exponential import MAX_POWER


@inner
def _exp(power: np.float32) -> np.float32:
    """Return e to a power, computed as on the GPU."""
    wide = np.float64(power)
    return np.float32(exponential(MAX_POWER if wide > MAX_POWER else wide))


@inner
def _store_edges(
    left: float, top: float, right: float, bottom: float, geometry: np.ndarray, boxes: np.ndarray, row: int
) -> None:
    """Convert a box to the coordinates of the original image, and write it to ``boxes``."""
    boxes[row, 0] = min(max((left - geometry[0]) * geometry[2], geometry[4]), geometry[6])
    boxes[row, 1] = min(max((top - geometry[1]) * geometry[3], geometry[5]), geometry[7])
    boxes[row, 2] = min(max((right - geometry[0]) * geometry[2], geometry[4]), geometry[6])
    boxes[row, 3] = min(max((bottom - geometry[1]) * geometry[3], geometry[5]), geometry[7])


@inner
def _store(
    centre_x: float, centre_y: float, wide: float, high: float, geometry: np.ndarray, boxes: np.ndarray, row: int
) -> None:
    """Convert a box's centre and extents to corners in the coordinates of the original image, and write these to ``boxes``."""
    half = np.float32(0.5)
    left, top = centre_x - wide * half, centre_y - high * half
    _store_edges(left, top, centre_x + wide * half, centre_y + high * half, geometry, boxes, row)


@kernel
def decode_centres(predicted: np.ndarray, firsts: np.ndarray, geometry: np.ndarray, boxes: np.ndarray) -> None:
    """Decode centres and extents.

    Args:
        predicted: the predictions of all samples, float32 of shape (n, 4).
        firsts: start of each sample's rows, followed by n.
        geometry: float32 of shape (samples, 8), pairs for x and y: the offsets to subtract, the factors to multiply by, and
            the least and greatest values of the results.
        boxes: output, float32 of shape (n, 4): left, top, right, bottom.
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
    """Decode offsets from anchors; see :func:`decode_centres`.

    Args:
        anchors: float32 of shape (anchors, 4): left, top, right, bottom.
        anchor_step: 1: each row of ``predicted`` has its own anchor; 0: all samples share the same anchors.
        means, stds: means and standard deviations of the offsets of x, y, width and height, float32 of shape (4,).
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
            wide = _exp(min(predicted[row, 2] * stds[2] + means[2], most)) * base_wide
            high = _exp(min(predicted[row, 3] * stds[3] + means[3], most)) * base_high
            _store(x, y, wide, high, geometry[sample], boxes, row)


@kernel
def decode_cells(
    predicted: np.ndarray,
    firsts: np.ndarray,
    geometry: np.ndarray,
    cells: np.ndarray,
    strides: np.ndarray,
    boxes: np.ndarray,
) -> None:
    """Decode offsets from the cells of grids, one for each stride; see :func:`decode_centres`.

    Args:
        cells: number of rows and columns of each grid, int64 of shape (samples, 2, strides).
        strides: the extent in pixels of the cells of each grid, int64.
    """
    for sample in range(len(geometry)):
        row = firsts[sample]
        for level in range(len(strides)):
            step = np.float32(strides[level])
            for y in range(cells[sample, 0, level]):
                for x in range(cells[sample, 1, level]):
                    centre_x = (predicted[row, 0] + np.float32(x)) * step
                    centre_y = (predicted[row, 1] + np.float32(y)) * step
                    wide = _exp(predicted[row, 2]) * step
                    high = _exp(predicted[row, 3]) * step
                    _store(centre_x, centre_y, wide, high, geometry[sample], boxes, row)
                    row += 1


@kernel
def decode_distances(
    predicted: np.ndarray,
    firsts: np.ndarray,
    geometry: np.ndarray,
    cells: np.ndarray,
    strides: np.ndarray,
    boxes: np.ndarray,
) -> None:
    """Decode distances from the centres of cells to the edges of boxes; see :func:`decode_cells`.

    Args:
        predicted: float32 of shape (n, 4): the distances to left, top, right and bottom, in units of cells; or of shape
            (n, 4 * logits): for each edge, the logits of the distances 0, 1, 2, ...
    """
    half, logits = np.float32(0.5), predicted.shape[1] // 4
    edges = np.empty(4, np.float32)
    for sample in range(len(geometry)):
        row = firsts[sample]
        for level in range(len(strides)):
            step = np.float32(strides[level])
            for y in range(cells[sample, 0, level]):
                for x in range(cells[sample, 1, level]):
                    for edge in range(4):
                        first = edge * logits
                        edges[edge] = predicted[row, first] if logits == 1 else _mean(predicted[row], first, logits)
                    centre_x, centre_y = np.float32(x) + half, np.float32(y) + half
                    _store_edges(
                        (centre_x - edges[0]) * step,
                        (centre_y - edges[1]) * step,
                        (centre_x + edges[2]) * step,
                        (centre_y + edges[3]) * step,
                        geometry[sample],
                        boxes,
                        row,
                    )
                    row += 1


@inner
def _mean(logits: np.ndarray, first: int, count: int) -> np.float32:
    """Return the mean of 0, 1, 2, ... weighted by the softmax of `count` logits, from index `first` on."""
    highest = logits[first]
    for number in range(1, count):
        highest = max(highest, logits[first + number])
    total = weighted = np.float32(0)
    for number in range(count):
        likely = _exp(logits[first + number] - highest)
        total += likely
        weighted += likely * np.float32(number)
    return weighted / total
