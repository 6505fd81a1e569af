"""The Laplacian of uint8 images with windows of size 3, in integers; results equal those of single-precision sums."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import kernel


@kernel
def laplacian_of_bytes(source: np.ndarray, inner: int, scale: np.float32, target: np.ndarray, like: np.generic) -> None:
    """Sum the second derivatives along both axes, each smoothed along the other axis; the border is mirrored.

    Args:
        source: uint8 of shape (images, rows, columns * inner).
        inner: number of adjacent elements that belong to a pixel.
        scale: the factor of the sum, a power of two.
        target: an array of the same shape as ``source``.
        like: any scalar of the target's type.
    """
    images, rows, size = source.shape
    # The smoothed value and the second derivative of three rows in each column, padded with one pixel at each end.
    smooth, curved = np.empty(size + 2 * inner, np.int16), np.empty(size + 2 * inner, np.int16)
    # Borders are mirrored without repeating the edge; a single row or column is its own neighbour.
    beyond = inner if size > inner else 0
    for image in range(images):
        for y in range(rows):
            above = source[image, y - 1 if y else min(1, rows - 1)]
            middle = source[image, y]
            below = source[image, y + 1 if y + 1 < rows else max(rows - 2, 0)]
            smooth_row, curved_row = smooth[inner : inner + size], curved[inner : inner + size]
            for i in range(size):
                around, twice = np.int32(above[i]) + np.int32(below[i]), 2 * np.int32(middle[i])
                smooth_row[i] = around + twice
                curved_row[i] = around - twice
            for i in range(inner):
                smooth[i], curved[i] = smooth_row[beyond + i], curved_row[beyond + i]
                last = size - inner - beyond + i
                smooth[size + inner + i], curved[size + inner + i] = smooth_row[last], curved_row[last]
            smooth_left, smooth_right = smooth[:size], smooth[2 * inner :]
            curved_left, curved_right = curved[:size], curved[2 * inner :]
            out = target[image, y]
            for i in range(size):
                along_columns = smooth_left[i] - 2 * smooth_row[i] + smooth_right[i]
                along_rows = curved_left[i] + 2 * curved_row[i] + curved_right[i]
                # Adding 0 turns a negative zero into a positive one.
                out[i] = converted(np.float32(np.int32(along_columns + along_rows)) * scale + np.float32(0), like)
