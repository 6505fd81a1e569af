"""Arithmetic on axis-aligned boxes: left, top, right, bottom (or starts and ends in more dimensions)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def volumes(boxes: np.ndarray) -> np.ndarray:
    """Return the areas or volumes of boxes; ``boxes`` has the shape (n, 2 * ndim)."""
    ndim = boxes.shape[1] // 2
    found: np.ndarray = np.prod(boxes[:, ndim:] - boxes[:, :ndim], axis=1)
    return found


def to_centres(boxes: np.ndarray) -> np.ndarray:
    """Return boxes as (x of the centre, y of the centre, width, height).

    >>> to_centres(np.array([[0.0, 0.0, 1.0, 0.5]]))
    array([[0.5 , 0.25, 1.  , 0.5 ]])
    """
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)


def gathered_rows(tables: Sequence[np.ndarray], counts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the selected rows of all tables in one array.

    Args:
        tables: a table for each sample.
        counts: the number of rows to copy from each table.
        indices: the indices of the rows to copy, within their tables: those for the first table, then those for the second, and so on.

    >>> gathered_rows([np.array([1, 2]), np.array([3, 4])], np.array([1, 2]), np.array([1, 0, 1])).tolist()
    [2, 3, 4]
    """
    firsts = np.cumsum([0, *map(len, tables[:-1])])
    rows: np.ndarray = np.concatenate(tables)[firsts.repeat(counts) + indices]
    return rows
