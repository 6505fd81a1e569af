"""Table lookup, and one-hot encoding."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import njit


@njit(nogil=True)
def _look_up(source: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    last = table.size - 1
    for i in range(source.size):
        key = source[i]
        target[i] = table[key] if 0 <= key < last else table[last]


def look_up(source: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    """Fill ``target`` with the entries of ``table`` at the indices in ``source``; indices out of range get the last entry.

    Args:
        source: integers, contiguous.
        table: the entries, followed by the default.
        target: an array of the table's type and the source's shape, contiguous.
    """
    # Entries are copied as unsigned integers, so that one kernel serves all types of the same size.
    bits = f"u{table.itemsize}"
    _look_up(source.reshape(-1), table.view(bits), target.reshape(-1).view(bits))


@njit(nogil=True)
def _mark(numbers: np.ndarray, on: np.generic, off: np.generic, count: int, inner: int, target: np.ndarray) -> None:
    for i in range(target.size):
        target[i] = off
    for begin in range(0, numbers.size, max(inner, 1)):
        for i in range(inner):
            number = numbers[begin + i]
            # Numbers are compared before they are truncated; the comparison is also false for NaN.
            if -1 < number < count:
                target[begin * count + int(number) * inner + i] = on


def mark(numbers: np.ndarray, on: np.generic, off: np.generic, count: int, inner: int, target: np.ndarray) -> None:
    """One-hot encode ``numbers``: fill ``target`` with ``off``, and with ``on`` where the index in the new dimension is the number.

    Args:
        numbers: contiguous; fractions are truncated, and numbers out of range are ignored.
        on, off: the bits of the values, as unsigned integers of the size of the target's elements.
        count: the extent of the target's new dimension.
        inner: the product of the extents of the dimensions after the new one.
        target: contiguous.
    """
    _mark(numbers.reshape(-1), on, off, count, inner, target.reshape(-1).view(on.dtype))
