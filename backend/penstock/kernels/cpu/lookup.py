"""Table lookup, and one-hot encoding."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel, njit
from penstock.kernels.cpu.parts import elements_at


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


@kernel
def mark(
    sources: np.ndarray,
    targets: np.ndarray,
    volumes: np.ndarray,
    inner_volumes: np.ndarray,
    begin: int,
    end: int,
    on: np.generic,
    off: np.generic,
    count: int,
    like: np.generic,
) -> None:
    """Fill arrays with ``off``, and with ``on`` at the positions that numbers name along a new dimension.

    Args:
        sources, targets: the address of each sample's numbers and of its result, int64.
        volumes, inner_volumes: how many numbers each has, in all and in the dimensions after the new one, int64.
        begin, end: the samples to compute.
        on, off: unsigned integers of the results' size: the bits of the values.
        count: the extent of the new dimension.
        like: a value of the numbers' type. Fractions are truncated, and numbers out of range are ignored.
    """
    for sample in range(begin, end):
        volume, inner = volumes[sample], inner_volumes[sample]
        numbers, target = elements_at(sources[sample], volume, like), elements_at(targets[sample], volume * count, on)
        for i in range(target.size):
            target[i] = off
        for first in range(0, volume, max(inner, 1)):
            for i in range(inner):
                number = numbers[first + i]
                # Compared before truncation; the comparison is also false for NaN.
                if -1 < number < count:
                    target[first * count + int(number) * inner + i] = on
