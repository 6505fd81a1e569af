"""Affine matrices in single precision."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def fill_about_centres(linear, size_in, size_out, matrix):  # type: ignore[no-untyped-def]
    """Fills the matrix [R|t], float32, that maps the middle of the output to the middle of the input."""
    half = np.float32(0.5)
    for row in range(len(linear)):
        total = np.float32(0)
        for column in range(len(linear)):
            matrix[row, column] = np.float32(linear[row, column])
            total += matrix[row, column] * (-np.float32(size_out[column]) * half)
        matrix[row, len(linear)] = total + np.float32(size_in[row]) * half
