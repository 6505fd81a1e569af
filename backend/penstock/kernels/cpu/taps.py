"""Tables of resampling filters."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def _value(distance: float, table: np.ndarray, per_unit: float) -> float:
    """Return the filter's value at a distance: a triangle if the table is empty, otherwise interpolated between its entries."""
    if not table.size:
        return max(1.0 - distance, 0.0)
    position = min(distance * per_unit, table.size - 1.0)
    index = min(int(position), table.size - 2)
    return table[index] + (position - index) * (table[index + 1] - table[index])


@kernel
def fill_taps(
    start: float,
    step: float,
    first_output: int,
    size: int,
    width: float,
    radius: float,
    firsts: np.ndarray,
    count: int,
    table: np.ndarray,
    per_unit: float,
    starts: np.ndarray,
    weights: np.ndarray,
) -> int:
    """Fill a table of taps; taps outside ``[0, size)`` are added to those at the edges.

    Args:
        start, step: the start of the region in the input, and the distance from one output position to the next.
        first_output: the first output position.
        size: the input's size.
        width: the filter's width, in input samples per unit of its distance.
        radius: the filter's radius, in input samples.
        firsts: the first tap of each output position; empty: the first tap within the radius.
        count: the number of taps per output position.
        table, per_unit: the filter's values from distance 0 until they vanish, and their number per unit; empty: a triangle.
        starts: filled with the first input position of each output, int32 of shape (n,).
        weights: filled, float32 of shape (n, taps).

    Returns:
        The number of columns of ``weights`` in use.
    """
    used = weights.shape[1]
    values, folded = np.empty(count), np.empty(used)
    last = 1
    for row in range(len(starts)):
        centre = (first_output + row + 0.5) * step + start - 0.5
        first = firsts[row] if firsts.size else math.ceil(centre - radius)
        total = 0.0
        for tap in range(count):
            values[tap] = _value(abs((first + tap - centre) / width), table, per_unit)
            total += values[tap]
        begin = min(min(max(first, 0), size - 1), size - used)
        folded[:] = 0.0
        for tap in range(count):
            folded[min(max(first + tap, 0), size - 1) - begin] += values[tap] / total
        starts[row] = begin
        for tap in range(used):
            weights[row, tap] = folded[tap]
            if folded[tap] != 0.0:
                last = max(last, tap + 1)
    return last
