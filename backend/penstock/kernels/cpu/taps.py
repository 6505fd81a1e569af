"""Tables of resampling filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def _value(distance, table, per_unit):  # type: ignore[no-untyped-def]
    """The filter at a distance: a triangle if the table is empty, otherwise interpolated between its entries."""
    if not table.size:
        return max(1.0 - distance, 0.0)
    position = min(distance * per_unit, table.size - 1.0)
    index = min(int(position), table.size - 2)
    return table[index] + (position - index) * (table[index + 1] - table[index])


@njit(**_OPTIONS)
def fill_taps(  # type: ignore[no-untyped-def]
    start, step, first_output, size, width, radius, firsts, count, table, per_unit, starts, weights
):
    """Fills a table of taps; those outside ``[0, size)`` are added to those at the edges.

    Args:
        start, step: of the region in the input, and from one output position to the next.
        first_output: the first output position.
        size: of the input.
        width: of the filter, in input samples per unit of its distance.
        radius: of the filter, in input samples.
        firsts: the first tap of each output position; empty: those within the radius.
        count: taps per output position.
        table, per_unit: the filter's values from 0 until they vanish, and their number per unit; empty: a triangle.
        starts: filled, int32 of shape (n,).
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
