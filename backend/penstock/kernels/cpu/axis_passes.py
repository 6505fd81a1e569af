"""The passes of a separable resampling: their order, and the window and the weights of each output position.

All of this is worked out in single precision, operation for operation as DALI does, whose results depend on it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

# Filters, by their number in `DALIInterpType`; a triangle is also what LINEAR is.
NEAREST, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)
# The radius of a filter that is not widened, in samples.
_RADIUS = np.array([0, 1, 2, 3, 1, 1], np.float32)
# The most taps of a filter.
MOST_TAPS = 8192
_TWO_DEVIATIONS = np.float32(4 * math.sqrt(2.0))
# What a tap costs along each axis, the width first, and what an element between two passes costs.
_COSTS = np.array([1.4, 1.0, 1.2], np.float32)
_COST_OF_ELEMENT = np.float32(3)
_ORDERS_OF_TWO = np.array(list(itertools.permutations(range(2))), np.int64)
_ORDERS_OF_THREE = np.array(list(itertools.permutations(range(3))), np.int64)
_HALF, _ONE, _TWO = np.float32(0.5), np.float32(1), np.float32(2)

# Columns of the descriptors of passes: numbers in single precision, and whole ones.
ORIGIN, STEP, SCALE = range(3)
OFFSET, LOW, HIGH, TAPS = range(4)


@kernel
def lanczos3_value(distance: np.float32) -> np.float32:
    """The Lanczos window of three lobes, by the C library's sine in single precision."""
    if distance >= np.float32(3):
        return np.float32(0)
    return np.float32(_sinc(distance) * _sinc(np.float32(distance / np.float32(3))))


@inner
def _sinc(x: np.float32) -> np.float32:
    angle = np.float32(np.float64(x) * math.pi)
    return np.float32(math.sin(angle)) / angle if angle > np.float32(1e-5) else _ONE


@inner
def _width(kind: int, widened: bool, covered: np.float32, size_out: int) -> np.float32:
    """The extent of a filter, in input samples."""
    own = _RADIUS[kind]
    radius = np.float32(own * covered) / np.float32(size_out) if widened else own
    if kind == GAUSSIAN:
        deviation = np.float32(np.float64(np.float32(radius * _HALF)) / math.sqrt(2.0))
        return max(_ONE, np.float32(_TWO_DEVIATIONS * deviation))
    if kind in (CUBIC, LANCZOS3):
        return np.float32(_TWO * max(own, radius))
    return max(_ONE, np.float32(_TWO * radius))


@inner
def _bounded(position: np.float32, size: int) -> np.int64:
    return np.int64(min(max(position, np.float32(0)), np.float32(size)))


@inner
def _fill_order(extents: np.ndarray, size_out: np.ndarray, taps: np.ndarray, order: np.ndarray) -> None:
    """Chooses the cheapest order of passes; of several, the first. Axes are numbered from the last one."""
    axes = extents.size
    least = np.float32(np.inf)
    orders = _ORDERS_OF_TWO if axes == 2 else _ORDERS_OF_THREE
    sizes = np.empty(axes, np.int64)
    for row in range(len(orders)):
        sizes[:] = extents
        total = np.float32(0)
        for axis in orders[row]:
            sizes[axis] = size_out[axis]
            elements = np.int64(1)
            for size in sizes:
                elements *= size
            cost = np.float32(_COSTS[axis] * np.float32(taps[axis] * elements))
            total = np.float32(total + np.float32(cost + np.float32(np.float32(elements) * _COST_OF_ELEMENT)))
        if total < least:
            least = total
            order[:] = orders[row]


@kernel
def fill_passes(
    size_in: np.ndarray,
    size_out: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    kinds: np.ndarray,
    antialias: bool,
    entries: np.ndarray,
    order: np.ndarray,
    singles: np.ndarray,
    wholes: np.ndarray,
) -> None:
    """Describes the passes of an image of two or three axes.

    Args:
        size_in, size_out: extents in samples.
        start, end: the region of the input that the output covers.
        kinds: the filters.
        antialias: whether filters widen when an axis shrinks.
        entries: the number of entries of each filter's table.
        order: filled: the axes in the order of passes.
        singles: filled, float32 of shape (axes, 3): the window of output position 0 (of NEAREST: the edge of its pixel) from the offset
            on, the step to the next position, and the entries of the filter's table for an input sample.
        wholes: filled, int64 of shape (axes, 4): the offset, the range of positions that are read, and the number of taps.
    """
    axes = size_in.size
    # Numbered from the last axis, as in orders.
    extents, taps, outputs = np.empty(axes, np.int64), np.empty(axes, np.int64), np.empty(axes, np.int64)
    anchors, turned = np.empty(axes, np.float32), np.empty(axes, np.int64)
    for axis in range(axes):
        size, begin, stop = size_in[axis], np.float32(start[axis]), np.float32(end[axis])
        if begin == stop:
            # An empty region is none.
            begin, stop = np.float32(0), np.float32(size)
        covered = np.float32(abs(stop - begin))
        scale, anchor, count = _ONE, np.float32(0), np.int64(1)
        if kinds[axis] != NEAREST:
            last = np.float32(entries[kinds[axis]] - 1)
            widened = antialias and covered > np.float32(size_out[axis])
            scale = np.float32(last / _width(kinds[axis], widened, covered, size_out[axis]))
            count = np.int64(np.ceil(np.float32(last / scale)))
            if count > MOST_TAPS:
                count, scale = np.int64(MOST_TAPS), np.float32(last / np.float32(MOST_TAPS))
            anchor = np.float32(np.float32(last * _HALF) / scale)
        low = _bounded(np.floor(np.float32(min(begin, stop) - anchor)), size)
        high = _bounded(np.ceil(np.float32(np.float32(max(begin, stop) - anchor) + np.float32(count))), size)
        # Of regions beside the image, its edge is read.
        low = min(low, size - 1)
        high = max(high, low + 1)
        singles[axis, ORIGIN], singles[axis, SCALE], anchors[axis] = begin, scale, anchor
        singles[axis, STEP] = np.float32(np.float32(stop - begin) / np.float32(size_out[axis]))
        wholes[axis, LOW], wholes[axis, HIGH], wholes[axis, TAPS] = low, high, count
        place = axes - 1 - axis
        extents[place], taps[place], outputs[place] = high - low, count, size_out[axis]
    _fill_order(extents, outputs, taps, turned)
    for turn in range(axes):
        order[turn] = axes - 1 - turned[turn]
    for axis in range(axes):
        if axis == order[0]:
            wholes[axis, LOW], wholes[axis, HIGH] = 0, size_in[axis]
        # Positions are counted from there, which rounds them.
        wholes[axis, OFFSET] = wholes[axis, LOW]
        origin, step = np.float32(singles[axis, ORIGIN] - np.float32(wholes[axis, LOW])), singles[axis, STEP]
        if kinds[axis] != NEAREST:
            shift = np.float32(np.float32(np.float32(_HALF * step) - _HALF) - anchors[axis])
            origin = np.float32(origin + shift)
        singles[axis, ORIGIN] = origin


@inner
def window_start(output: int, origin: np.float32, step: np.float32, offset: int) -> np.int64:
    """The first position of the window of an output position; it may lie outside the input."""
    return np.int64(np.ceil(np.float32(np.float32(np.float32(output) * step) + origin))) + offset


@inner
def _value(place: np.float32, table: np.ndarray) -> np.float32:
    """A filter's value at a place in its table, between whose entries it is interpolated."""
    if not (place > -_ONE and place < np.float32(table.size)):
        return np.float32(0)
    entry = np.int64(np.floor(place))
    rest = np.float32(place - np.float32(entry))
    left = table[entry] if entry >= 0 else np.float32(0)
    right = table[entry + 1] if entry + 1 < table.size else np.float32(0)
    return np.float32(left + np.float32(rest * np.float32(right - left)))


@kernel
def fill_taps(
    singles: np.ndarray,
    wholes: np.ndarray,
    table: np.ndarray,
    outputs: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Fills the taps of an axis.

    Args:
        singles, wholes: the description of its pass.
        table: of the filter.
        outputs: the output positions.
        starts: filled: the first input position of each; positions beyond what is read are those of its edge.
        weights: filled, float32 of shape (outputs, taps).
    """
    origin, step, scale = singles[ORIGIN], singles[STEP], singles[SCALE]
    for row in range(outputs.size):
        exact = np.float32(np.float32(np.float32(outputs[row]) * step) + origin)
        first = np.float32(np.ceil(exact))
        total, rest = np.float32(0), np.float32(first - exact)
        for tap in range(weights.shape[1]):
            weight = _value(np.float32(np.float32(rest + np.float32(tap)) * scale), table)
            weights[row, tap] = weight
            total = np.float32(total + weight)
        starts[row] = np.int64(first) + wholes[OFFSET]
        if total != np.float32(0):
            for tap in range(weights.shape[1]):
                weights[row, tap] = weights[row, tap] / total


@kernel
def fill_nearest(
    singles: np.ndarray, wholes: np.ndarray, is_width: bool, outputs: np.ndarray, positions: np.ndarray
) -> None:
    """Fills the input positions nearest to output positions, which ascend.

    Args:
        singles, wholes: the description of the axis's pass.
        is_width: whether it is the last axis; along others, steps are added up one by one.
        outputs: the output positions.
        positions: filled.
    """
    origin, step, offset = singles[ORIGIN], singles[STEP], wholes[OFFSET]
    edge, reached = np.float32(origin + np.float32(_HALF * step)), 0
    for row in range(outputs.size):
        output = outputs[row]
        if is_width and step == _ONE:
            position = np.int64(np.floor(np.float32(origin + _HALF))) + output
        elif is_width:
            place = np.float32(np.float32(np.float32(output) + _HALF) * step)
            position = np.int64(np.floor(np.float32(origin + place)))
        else:
            while reached < output:
                edge, reached = np.float32(edge + step), reached + 1
            position = np.int64(np.floor(edge))
        positions[row] = min(max(position + offset, wholes[LOW]), wholes[HIGH] - 1)


@inner
def _mark_rests(begin: int, end: int, lanes: int, marks: np.ndarray) -> int:
    """Marks what is left of a range after groups of ``lanes``; returns where the next range begins."""
    for position in range(begin + max(end - begin, 0) // lanes * lanes, end):
        marks[position] = True
    return max(begin, end)


@kernel
def fill_rests_of_columns(singles: np.ndarray, wholes: np.ndarray, lanes: int, marks: np.ndarray) -> None:
    """Marks columns that are left over where DALI resamples columns in groups of ``lanes``.

    Columns whose windows lie inside the input are grouped apart from those to the left and to the right.
    """
    width, origin, step = marks.size, singles[ORIGIN], singles[STEP]
    offset, taps, low, high = wholes[OFFSET], wholes[TAPS], wholes[LOW], wholes[HIGH]
    mirrored = window_start(width - 1, origin, step, offset) < window_start(0, origin, step, offset)
    begin, end = 0, width
    while begin < width:
        start = window_start(begin, origin, step, offset)
        if not (start + taps > high if mirrored else start < low):
            break
        begin += 1
    while end > 0:
        start = window_start(end - 1, origin, step, offset)
        if not (start < low if mirrored else start + taps > high):
            break
        end -= 1
    marks[:] = False
    reached = _mark_rests(0, min(begin, end), lanes, marks)
    reached = _mark_rests(reached, begin, lanes, marks)
    reached = _mark_rests(reached, end, lanes, marks)
    _mark_rests(reached, width, lanes, marks)
