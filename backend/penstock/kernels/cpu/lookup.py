"""Looking numbers up in a table, and marking their places."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _look_up(source: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    last = table.size - 1
    for i in range(source.size):
        key = source[i]
        target[i] = table[key] if 0 <= key < last else table[last]


def look_up(source: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    """Fills ``target`` with the entries of ``table`` that ``source`` numbers; numbers out of range take the last one.

    Args:
        source: integers, contiguous.
        table: entries; the last is for numbers that have none.
        target: of the table's type and the source's shape, contiguous.
    """
    # Entries are moved as they are, so that types of one size share one kernel.
    bits = f"u{table.itemsize}"
    _look_up(source.reshape(-1), table.view(bits), target.reshape(-1).view(bits))


@njit(nogil=True, cache=True)
def _mark(numbers: np.ndarray, on: np.generic, off: np.generic, count: int, inner: int, target: np.ndarray) -> None:
    for i in range(target.size):
        target[i] = off
    for begin in range(0, numbers.size, max(inner, 1)):
        for i in range(inner):
            number = numbers[begin + i]
            # Before fractions are cut off; also false for NaN.
            if -1 < number < count:
                target[begin * count + int(number) * inner + i] = on


def mark(numbers: np.ndarray, on: np.generic, off: np.generic, count: int, inner: int, target: np.ndarray) -> None:
    """Fills ``target`` with ``off``, but with ``on`` at the places that ``numbers`` tell.

    Args:
        numbers: contiguous; fractions are cut off, and those that are no place passed over.
        on, off: unsigned integers of the target's size: the bits of the values.
        count: the number of places, along a dimension of the target that ``numbers`` does not have.
        inner: the volume of the dimensions behind that one.
        target: contiguous.
    """
    _mark(numbers.reshape(-1), on, off, count, inner, target.reshape(-1).view(on.dtype))
