"""Tables of the taps of resampling filters."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def _value(distance: float, table: np.ndarray, per_unit: float) -> float:
    """Return a filter's value at a distance: interpolated between the table's entries, or a triangle's if the table is empty."""
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
    """Fill a table of taps; the weights of taps outside ``[0, size)`` are added to those of the edges.

    Args:
        start, step: the start of the region in the input, and the distance from one output position to the next.
        first_output: the first output position.
        size: the input's extent.
        width: the factor by which the filter is widened: input samples per unit of distance in ``table``.
        radius: the filter's radius, in input samples.
        firsts: the first tap of each output position; empty: the first tap within the radius.
        count: the number of taps per output position.
        table: the filter's values from distance 0 to the distance at which they vanish; empty: the filter is a triangle.
        per_unit: the number of the table's values per unit of distance.
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
