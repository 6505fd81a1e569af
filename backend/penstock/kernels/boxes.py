"""Arithmetic on axis-aligned boxes: left, top, right, bottom (or starts and ends in more dimensions)."""

from __future__ import annotations

import numpy as np


def volumes(boxes: np.ndarray) -> np.ndarray:
    """Areas (volumes) of boxes of shape (n, 2 * ndim)."""
    ndim = boxes.shape[1] // 2
    return np.prod(boxes[:, ndim:] - boxes[:, :ndim], axis=1)


def to_centres(boxes: np.ndarray) -> np.ndarray:
    """Boxes as x and y of the centre, width, height.

    >>> to_centres(np.array([[0.0, 0.0, 1.0, 0.5]]))
    array([[0.5 , 0.25, 1.  , 0.5 ]])
    """
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)
