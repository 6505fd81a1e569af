"""Linear transforms of points on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import kernel


@kernel
def _transform(
    points: np.ndarray, matrix: np.ndarray, offset: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    columns, rows = matrix.shape
    for p in range(points.size // rows):
        for column in range(columns):
            value = np.float32(0)
            for row in range(rows):
                value += np.float32(points[p * rows + row]) * matrix[column, row]
            target[p * columns + column] = converted(value + offset[column], like)


def transform_points(points: np.ndarray, matrix: np.ndarray, offset: np.ndarray, target: np.ndarray) -> None:
    """Set ``target`` to ``matrix @ point + offset`` for each point, in single precision.

    Args:
        points: an array of any type, of shape (..., n), contiguous.
        matrix: float32 of shape (m, n).
        offset: float32 of m elements.
        target: an array of shape (..., m), contiguous; its type decides how results are rounded.
    """
    _transform(points.reshape(-1), matrix, offset, target.reshape(-1), target.dtype.type(0))
