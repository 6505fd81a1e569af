"""Arithmetic on axis-aligned boxes: left, top, right, bottom (or starts and ends in more dimensions)."""

from __future__ import annotations

import numpy as np


def volumes(boxes: np.ndarray) -> np.ndarray:
    """Areas (volumes) of boxes of shape (n, 2 * ndim)."""
    ndim = boxes.shape[1] // 2
    return np.prod(boxes[:, ndim:] - boxes[:, :ndim], axis=1)


def intersections(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The intersection areas (volumes) of each of ``boxes`` with each of ``others``, of shape (boxes, others)."""
    ndim = boxes.shape[1] // 2
    starts = np.maximum(boxes[:, None, :ndim], others[None, :, :ndim])
    ends = np.minimum(boxes[:, None, ndim:], others[None, :, ndim:])
    return np.prod(np.maximum(ends - starts, 0), axis=2)


def overlaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of each of ``boxes`` with each of ``others``; 0 if both are empty."""
    shared = intersections(boxes, others)
    united = volumes(boxes)[:, None] + volumes(others)[None] - shared
    return np.divide(shared, united, out=np.zeros_like(shared), where=shared > 0)


def to_centres(boxes: np.ndarray) -> np.ndarray:
    """Boxes as x and y of the centre, width, height.

    >>> to_centres(np.array([[0.0, 0.0, 1.0, 0.5]]))
    array([[0.5 , 0.25, 1.  , 0.5 ]])
    """
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)
