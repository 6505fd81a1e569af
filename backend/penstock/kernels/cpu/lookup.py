"""Looking numbers up in a table, and marking their places."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _look_up(source, table, target):  # type: ignore[no-untyped-def]
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
def _mark(numbers, value, target):  # type: ignore[no-untyped-def]
    count = target.shape[1]
    for o in range(numbers.shape[0]):
        for i in range(numbers.shape[1]):
            if 0 <= numbers[o, i] < count:
                target[o, numbers[o, i], i] = value


def mark(numbers: np.ndarray, value: np.generic, target: np.ndarray) -> None:
    """Writes ``value`` to the places that ``numbers`` tell.

    Args:
        numbers: int32 of shape (outer, inner), contiguous; those that are no place are passed over.
        value: of the target's type.
        target: of shape (outer, places, inner), contiguous.
    """
    bits = f"u{target.itemsize}"
    _mark(numbers, np.array(value).view(bits)[()], target.view(bits))
