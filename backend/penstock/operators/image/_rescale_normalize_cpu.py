"""Values of pixels by tables of their channels, on CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def look_up_pixels(image: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    """target[y, x, c] = table[c, image[y, x, c]], or table[0, ...] where there is one for all; of any strides."""
    height, width, channels = image.shape
    several = len(table) > 1
    for y in range(height):
        for c in range(channels):
            values, row, out = table[c if several else 0], image[y, :, c], target[y, :, c]
            for x in range(width):
                out[x] = values[row[x]]
