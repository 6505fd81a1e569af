"""The smallest or largest integer of each row, for many samples in one call."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.parts import elements_at


@kernel
def find_extremes(
    samples: np.ndarray, begin: int, end: int, largest: bool, like: np.generic, target: np.ndarray
) -> None:
    """Find the smallest or the largest integer of each row.

    Args:
        samples: int64 of shape (samples, 4): a sample's address, its number of rows, the number of elements in a row (at least one), and
            the position in ``target`` at which its results begin.
        begin, end: the range of samples to compute.
        largest: whether to find the largest.
        like: a value of the elements' type.
        target: filled; of the elements' type.
    """
    for sample in range(begin, end):
        address, rows, count, to = samples[sample]
        values = elements_at(address, rows * count, like)
        for row in range(rows):
            part = values[row * count : (row + 1) * count]
            found = part[0]
            if largest:
                for i in range(count):
                    found = part[i] if part[i] > found else found
            else:
                for i in range(count):
                    found = part[i] if part[i] < found else found
            target[to + row] = found
