"""Compute the descriptors from which a GPU computes tables of taps, for many images in one call."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import brief, inner, kernel

# Ways to determine the first tap of an output position.
NEAREST_COLUMN, NEAREST_ROW, WITHIN_RADIUS, FROM_ORIGIN = range(4)
_NEAREST, _GAUSSIAN = 0, 5


@kernel
def gaussian_window(start: float, step: float, width: float) -> tuple[np.float32, np.float32, int]:
    """Return the start of the window of output position 0, the step from one output position to the next, and the number of taps."""
    half, last = np.float32(0.5), np.float32(64)
    deviation = np.float32(np.float64(np.float32(np.float32(width) * half)) / math.sqrt(2.0))
    # The number of entries in the filter's table per input sample.
    scale = np.float32(last / max(np.float32(1), np.float32(np.float32(4 * math.sqrt(2.0)) * deviation)))
    single_step = np.float32(step)
    anchor = np.float32(np.float32(last * half) / scale)
    shift = np.float32(np.float32(np.float32(half * single_step) - half) - anchor)
    return np.float32(np.float32(start) + shift), single_step, math.ceil(np.float32(last / scale))


@inner
def _fill_axis(
    rows: np.ndarray,
    last: bool,
    plans: tuple[np.ndarray, ...],
    antialias: bool,
    filters: np.ndarray,
    max_support: float,
) -> None:
    """Fill in the descriptors of all images' tables for one axis, except their offsets; ``last``: whether the axis is the width."""
    size_in, size_out, start, end, kinds, first, count, mirrored = plans
    for i in range(len(kinds)):
        row, own = rows[i], filters[kinds[i]]
        step = (end[i] - start[i]) / size_out[i]
        width = max(abs(step), 1.0) if antialias else 1.0
        width = min(width, max_support / own.support)
        row.start, row.step, row.width, row.radius = start[i], step, width, own.support * width
        row.origin = row.single_step = np.float32(0)
        if kinds[i] == _NEAREST:
            row.kind, row.taps = NEAREST_COLUMN if last else NEAREST_ROW, 1
            row.origin = np.float32(start[i])
            row.single_step = (np.float32(end[i]) - np.float32(start[i])) / np.float32(size_out[i])
        elif kinds[i] == _GAUSSIAN:
            row.kind = FROM_ORIGIN
            row.origin, row.single_step, row.taps = gaussian_window(start[i], step, width)
        else:
            row.kind = WITHIN_RADIUS
            # For a triangle exactly two samples wide, the third tap is zero.
            row.taps = 2 if own.entries == 0 and width == 1.0 else math.floor(2 * own.support * width) + 1
        row.size, row.outputs = size_in[i], count[i]
        row.first, row.direction = first[i], 1
        if mirrored[i]:
            row.first, row.direction = first[i] + count[i] - 1, -1
        row.used = min(np.int64(row.taps), size_in[i])
        row.output_stride, row.tap_stride = (1, count[i]) if last else (row.used, 1)
        row.values, row.entries = own.values, own.entries


@inner
def _are_alike(rows: np.ndarray) -> bool:
    """Return whether all descriptors describe the same table."""
    one = rows[0]
    for i in range(1, len(rows)):
        row = rows[i]
        if row.start != one.start or row.step != one.step or row.width != one.width or row.kind != one.kind:
            return False
        if row.origin != one.origin or row.single_step != one.single_step or row.entries != one.entries:
            return False
        if row.size != one.size or row.outputs != one.outputs or row.values != one.values:
            return False
        if row.first != one.first or row.direction != one.direction:
            return False
    return True


@kernel
def _place(rows: np.ndarray, starts: int, weights: int) -> tuple[int, int]:
    """Set the offsets of consecutive tables, which begin at ``starts`` and ``weights``; return the offsets after the last table."""
    for i in range(len(rows)):
        rows[i].starts, rows[i].weights = starts, weights
        starts += rows[i].outputs
        weights += rows[i].outputs * rows[i].used
    return starts, weights


@inner
def read_range(row: np.record) -> tuple[int, int]:
    """Return the begin and end of a range that contains all input positions that are read with a table; ``row``: the table's descriptor."""
    size, taps, used = int(row.size), int(row.taps), int(row.used)
    number, other = np.float64(row.first), np.float64(row.first + row.direction * (row.outputs - 1))
    if row.kind == WITHIN_RADIUS:
        origin, step = row.start + row.step / 2 - 0.5 - row.radius, row.step
    else:
        origin, step = np.float64(row.origin), np.float64(row.single_step)
        if row.kind != FROM_ORIGIN:
            origin += step / 2
    # Some positions are computed in single precision, and errors add up from one output position to the next.
    slack = 2 + int(max(number, other) * size) // (1 << 22)
    low = math.floor(origin + min(step * number, step * other)) - slack
    high = math.ceil(origin + max(step * number, step * other)) + slack
    return min(max(low, 0), size - used), min(max(high, 0) + taps, size)


@brief
def plan_tables(
    rows: np.ndarray,
    vertical: tuple[np.ndarray, ...],
    horizontal: tuple[np.ndarray, ...],
    antialias: tuple[bool, bool],
    filters: np.ndarray,
    max_support: float,
    copied: int,
) -> tuple[int, int, int, int]:
    """Fill in the descriptors of both axes' tables. If all images have the same table along an axis, they share it.

    Args:
        rows: filled with the descriptors of the heights' tables, then those of the widths' tables; has two rows for each
            image.
        vertical, horizontal: size_in, size_out, start, end, kinds, first, count and mirrored of `resize_shapes.AxisPlans`.
        antialias: whether to antialias, for each axis.
        filters: ``support``, ``entries`` and ``values`` of each filter; filters without entries are triangles.
        max_support: the maximum radius of a filter, in input samples; filters that widen further are limited to it.
        copied: the number of floats in memory before the weights.

    Returns:
        The number of tables of heights, of tables of widths, of starts, and of weights.
    """
    count = len(vertical[0])
    _fill_axis(rows[:count], False, vertical, antialias[0], filters, max_support)
    down = 1 if _are_alike(rows[:count]) else count
    starts, weights = _place(rows[:down], 0, copied)
    _fill_axis(rows[down : down + count], True, horizontal, antialias[1], filters, max_support)
    across = 1 if _are_alike(rows[down : down + count]) else count
    starts, weights = _place(rows[down : down + across], starts, weights)
    return down, across, starts, weights
