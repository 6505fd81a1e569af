"""Finding the connected components of label maps."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import njit


@njit(nogil=True)
def _boxes(labels: np.ndarray, left: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Return the bounding boxes of the components among the elements marked in ``left``, and clear these marks."""
    # Copy with loops: a slice assignment, because of its error message, takes longer to compile than everything else.
    ndim = shape.size
    strides = np.ones(ndim, np.int64)
    for axis in range(ndim - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    found = np.empty((16, 2 * ndim), np.int64)
    count = 0
    stack = np.empty(left.size, np.int64)
    place = np.empty(ndim, np.int64)
    for first in range(left.size):
        if not left[first]:
            continue
        if count == found.shape[0]:
            larger = np.empty((2 * count, 2 * ndim), np.int64)
            for other in range(count):
                for end in range(2 * ndim):
                    larger[other, end] = found[other, end]
            found = larger
        box = found[count]
        count += 1
        for axis in range(ndim):
            box[axis], box[ndim + axis] = shape[axis], 0
        left[first] = False
        stack[0] = first
        height = 1
        while height:
            height -= 1
            position = stack[height]
            rest = position
            for axis in range(ndim):
                place[axis] = rest // strides[axis]
                rest %= strides[axis]
                box[axis] = min(box[axis], place[axis])
                box[ndim + axis] = max(box[ndim + axis], place[axis] + 1)
            for axis in range(ndim):
                for step in (-1, 1):
                    if not 0 <= place[axis] + step < shape[axis]:
                        continue
                    neighbour = position + step * strides[axis]
                    if left[neighbour] and labels[neighbour] == labels[first]:
                        left[neighbour] = False
                        stack[height] = neighbour
                        height += 1
    return found[:count]


def component_boxes(labels: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the bounding boxes of connected components, int64 of shape (components, 2 * ndim): starts, then ends.

    Elements are connected if they have the same label and share a face. Components are in the order of their first elements.

    Args:
        labels: an array of integers of any shape.
        wanted: a mask of the same shape, which marks the elements that may belong to components.
    """
    flat = np.ascontiguousarray(labels).reshape(-1)
    return _boxes(flat, wanted.reshape(-1).copy(), np.array(labels.shape, np.int64))
