"""Masks of boxes, in their images."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel


@inner
def _read_at(mask: np.ndarray, x: float, y: float) -> np.float32:
    """Read a zero-padded mask at a position by bilinear interpolation; the first pixel's centre is at (1, 1)."""
    high, wide = mask.shape
    column, row = np.int64(x), np.int64(y)
    right, lower = x - np.float32(column), y - np.float32(row)
    total = np.float32(0)
    for i in range(2):
        if not 1 <= row + i <= high:
            continue
        along = np.float32(0)
        for j in range(2):
            if 1 <= column + j <= wide:
                along += mask[row + i - 1, column + j - 1] * (right if j else np.float32(1) - right)
        total += along * (lower if i else np.float32(1) - lower)
    return total


@kernel
def paste_masks(masks: np.ndarray, boxes: np.ndarray, threshold: float, results: np.ndarray) -> None:
    """Fill ``results`` with each mask, resized to its box, and zeros around it.

    Args:
        masks: float32 of shape (n, height, width).
        boxes: int64 of shape (n, 4): the first and last column and row of each mask with a border of zeros around it.
        threshold: uint8 results are 1 above it; -inf: results are the values themselves.
        results: the output, of shape (n, height, width).
    """
    is_binary = threshold > -np.inf
    limit = np.float32(threshold)
    for number in range(len(masks)):
        target, mask = results[number], masks[number]
        target[:] = 0
        left, top, last_column, last_row = boxes[number]
        wide, high = max(last_column - left + 1, 1), max(last_row - top + 1, 1)
        step_x = np.float32(mask.shape[1] + 2) / np.float32(wide)
        step_y = np.float32(mask.shape[0] + 2) / np.float32(high)
        # The last position, which has no neighbour to interpolate with.
        most_x, most_y = np.float32(mask.shape[1] + 1), np.float32(mask.shape[0] + 1)
        half, zero = np.float32(0.5), np.float32(0)
        for row in range(max(top, 0), min(top + high, target.shape[0])):
            y = min(max((np.float32(row - top) + half) * step_y - half, zero), most_y)
            for column in range(max(left, 0), min(left + wide, target.shape[1])):
                x = min(max((np.float32(column - left) + half) * step_x - half, zero), most_x)
                value = _read_at(mask, x, y)
                if is_binary:
                    target[row, column] = value > limit
                else:
                    target[row, column] = value
