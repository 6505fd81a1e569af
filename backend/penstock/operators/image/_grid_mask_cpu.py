"""Zeroing the squares of a grid on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel
from penstock.operators.image._grids import Grid


@kernel
def _mask(
    source: np.ndarray,
    channels: int,
    cosine: np.float32,
    sine: np.float32,
    shift_x: np.float32,
    shift_y: np.float32,
    ratio: np.float32,
    target: np.ndarray,
) -> None:
    """Copy ``source`` (H, W * C) to ``target`` of the same shape, with zeros in the squares of the grid."""
    height, elements = source.shape
    width = elements // channels
    steps = np.arange(width).astype(np.float32)
    kept = np.empty(width, np.uint8)
    for y in range(height):
        row, out, place = source[y], target[y], np.float32(y)
        for x in range(width):
            along_x = steps[x] * cosine - place * sine - shift_x
            along_y = steps[x] * sine + place * cosine - shift_y
            along_x -= np.floor(along_x)
            along_y -= np.floor(along_y)
            kept[x] = (along_x >= ratio) | (along_y >= ratio)
        if channels == 3:
            for x in range(width):
                first = 3 * x
                out[first] = row[first] * kept[x]
                out[first + 1] = row[first + 1] * kept[x]
                out[first + 2] = row[first + 2] * kept[x]
        else:
            for x in range(width):
                for c in range(channels):
                    out[x * channels + c] = row[x * channels + c] * kept[x]


def mask_grid(source: np.ndarray, grid: Grid, target: np.ndarray) -> None:
    """Copy an image (H, W, C) to ``target``, with zeros in the squares of ``grid``; both images must be contiguous."""
    height, _, channels = source.shape
    if source.size:
        _mask(source.reshape(height, -1), channels, *grid, target.reshape(height, -1))
