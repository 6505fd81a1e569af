"""Means of blocks of pixels, rounded as Pillow does."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def block_means(image: np.ndarray, rows: int, columns: int, result: np.ndarray) -> None:
    """Compute the mean of each block of ``rows`` by ``columns`` pixels; blocks at the end may be smaller.

    As in Pillow, sums are multiplied by the 24-bit reciprocal of the number of pixels, which determines how halves are rounded.
    """
    height, width, channels = image.shape
    for y in range(result.shape[0]):
        top, bottom = y * rows, min(y * rows + rows, height)
        for x in range(result.shape[1]):
            left, right = x * columns, min(x * columns + columns, width)
            count = np.uint32((bottom - top) * (right - left))
            factor = np.uint32((1 << 24) // count)
            for c in range(channels):
                total = count // np.uint32(2)
                for i in range(top, bottom):
                    for k in range(left, right):
                        total += np.uint32(image[i, k, c])
                result[y, x, c] = np.uint32(total * factor) >> np.uint32(24)
