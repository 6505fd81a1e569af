"""Pasting the masks of boxes into images on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel


@inner
def _interpolate_row(mask: np.ndarray, row: int, lefts: np.ndarray, shares: np.ndarray, values: np.ndarray) -> None:
    """Fill ``values`` with a row of a zero-padded mask at positions between its columns.

    Args:
        mask: float32 of shape (height, width).
        row: the number of the row; the mask's first row is 1.
        lefts: the number of the column to the left of each position, int64; the mask's first column is 1.
        shares: the distance of each position from that column, float32.
    """
    high, wide = mask.shape
    values[:] = 0
    if not 1 <= row <= high:
        return
    for i in range(lefts.size):
        left, share = lefts[i], shares[i]
        if 1 <= left <= wide:
            values[i] += mask[row - 1, left - 1] * (np.float32(1) - share)
        if left < wide:
            values[i] += mask[row - 1, left] * share


@kernel
def paste_masks(masks: np.ndarray, boxes: np.ndarray, threshold: float, results: np.ndarray) -> None:
    """Fill each image of ``results`` with a mask that is resized to its box, and zeros around the mask.

    Args:
        masks: float32 of shape (n, height, width).
        boxes: int64 of shape (n, 4): first column, first row, last column and last row of each mask, including a border of zeros.
        threshold: results are 1 for values above it, else 0; -inf: results are the values themselves.
        results: the output, of shape (n, height, width).
    """
    is_binary = threshold > -np.inf
    limit, half, zero = np.float32(threshold), np.float32(0.5), np.float32(0)
    lefts, shares = np.empty(results.shape[2], np.int64), np.empty(results.shape[2], np.float32)
    upper, lower = np.empty(results.shape[2], np.float32), np.empty(results.shape[2], np.float32)
    for number in range(len(masks)):
        target, mask = results[number], masks[number]
        left, top, last_column, last_row = boxes[number]
        wide, high = max(last_column - left + 1, 1), max(last_row - top + 1, 1)
        step_x = np.float32(mask.shape[1] + 2) / np.float32(wide)
        step_y = np.float32(mask.shape[0] + 2) / np.float32(high)
        # The greatest position in the padded mask, which has no next neighbour to interpolate with.
        most_x, most_y = np.float32(mask.shape[1] + 1), np.float32(mask.shape[0] + 1)
        begin, end = min(max(left, 0), target.shape[1]), min(max(left + wide, 0), target.shape[1])
        first, last = min(max(top, 0), target.shape[0]), min(max(top + high, 0), target.shape[0])
        count = max(end - begin, 0)
        for i in range(count):
            x = min(max((np.float32(begin + i - left) + half) * step_x - half, zero), most_x)
            lefts[i] = np.int64(x)
            shares[i] = x - np.float32(lefts[i])
        target[:first], target[last:] = 0, 0
        read = -2
        for row in range(first, last):
            y = min(max((np.float32(row - top) + half) * step_y - half, zero), most_y)
            above = int(y)
            share = y - np.float32(above)
            if above != read:
                # All image rows between two rows of the mask are interpolated from these two, which are therefore kept.
                if above == read + 1:
                    upper, lower = lower, upper
                else:
                    _interpolate_row(mask, above, lefts[:count], shares[:count], upper)
                _interpolate_row(mask, above + 1, lefts[:count], shares[:count], lower)
                read = above
            line, rest = target[row], np.float32(1) - share
            line[:begin], line[begin + count :] = 0, 0
            if is_binary:
                for i in range(count):
                    line[begin + i] = upper[i] * rest + lower[i] * share > limit
            else:
                for i in range(count):
                    line[begin + i] = upper[i] * rest + lower[i] * share
