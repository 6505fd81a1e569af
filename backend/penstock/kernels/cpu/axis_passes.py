"""The passes of a separable resampling: their order, and the window and the weights of each output position.

All of this is computed in single precision, operation for operation as in DALI, as results depend on the rounding.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

# The numbers of filters in `DALIInterpType`. LINEAR is the same triangle as TRIANGULAR.
NEAREST, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)
# The radius of each filter when it is not widened, in samples.
_RADIUS = np.array([0, 1, 2, 3, 1, 1], np.float32)
# The largest number of taps of a filter.
MOST_TAPS = 8192
_TWO_DEVIATIONS = np.float32(4 * math.sqrt(2.0))
# The costs of a tap along each axis, the width first, and of an element between two passes.
_COSTS = np.array([1.4, 1.0, 1.2], np.float32)
_COST_OF_ELEMENT = np.float32(3)
_ORDERS_OF_TWO = np.array(list(itertools.permutations(range(2))), np.int64)
_ORDERS_OF_THREE = np.array(list(itertools.permutations(range(3))), np.int64)
_HALF, _ONE, _TWO = np.float32(0.5), np.float32(1), np.float32(2)

# Columns of `singles` and of `wholes`, the arrays that describe passes; see `fill_passes`.
ORIGIN, STEP, SCALE = range(3)
OFFSET, LOW, HIGH, TAPS = range(4)
RESTS = 4
"""The maximum number of ranges of a line whose values are rounded one by one; see :func:`fill_rests`."""


@kernel
def lanczos3_value(distance: np.float32) -> np.float32:
    """Return the value of the Lanczos window of three lobes, with the C library's sine in single precision."""
    if distance >= np.float32(3):
        return np.float32(0)
    return np.float32(_sinc(distance) * _sinc(np.float32(distance / np.float32(3))))


@inner
def _sinc(x: np.float32) -> np.float32:
    angle = np.float32(np.float64(x) * math.pi)
    return np.float32(math.sin(angle)) / angle if angle > np.float32(1e-5) else _ONE


@inner
def _width(kind: int, widened: bool, covered: np.float32, size_out: int) -> np.float32:
    """Return the width of a filter, in input samples."""
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
    """Choose the cheapest order of passes; if several are equally cheap, the first one. Axes are numbered from the last one."""
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
    """Describe the resampling passes of an image with two or three axes.

    Args:
        size_in, size_out: the extents of the input and the output, in samples.
        start, end: the region of the input that the output covers.
        kinds: the number of each axis's filter.
        antialias: whether filters widen when an axis shrinks.
        entries: the number of entries of each filter's table.
        order: filled with the axes in the order of passes.
        singles: filled, float32 of shape (axes, 3): where the window of output position 0 begins, relative to the offset (for NEAREST:
            where the region begins), the step from one output position to the next, and the number of entries in the filter's table
            per input sample.
        wholes: filled, int64 of shape (axes, 4): the offset, the range of input positions that are read, and the number of taps.
    """
    axes = size_in.size
    # These arrays begin with the last axis, as `_fill_order` expects.
    extents, taps, outputs = np.empty(axes, np.int64), np.empty(axes, np.int64), np.empty(axes, np.int64)
    anchors, turned = np.empty(axes, np.float32), np.empty(axes, np.int64)
    for axis in range(axes):
        size, begin, stop = size_in[axis], np.float32(start[axis]), np.float32(end[axis])
        if begin == stop:
            # An empty region stands for the whole axis.
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
        # If the region lies outside the image, the image's edge is read.
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
        # As in DALI, positions are relative to the first one that is read: this affects how they are rounded.
        wholes[axis, OFFSET] = wholes[axis, LOW]
        origin, step = np.float32(singles[axis, ORIGIN] - np.float32(wholes[axis, LOW])), singles[axis, STEP]
        if kinds[axis] != NEAREST:
            shift = np.float32(np.float32(np.float32(_HALF * step) - _HALF) - anchors[axis])
            origin = np.float32(origin + shift)
        singles[axis, ORIGIN] = origin


@inner
def window_start(output: int, origin: np.float32, step: np.float32, offset: int) -> np.int64:
    """Return the first input position in an output position's window; it may lie outside the input."""
    return np.int64(np.ceil(np.float32(np.float32(np.float32(output) * step) + origin))) + offset


@inner
def _value(place: np.float32, table: np.ndarray) -> np.float32:
    """Return a filter's value at a position in its table, interpolated between entries; 0 outside the table."""
    if not (place > -_ONE and place < np.float32(table.size)):
        return np.float32(0)
    entry = np.int64(np.floor(place))
    rest = np.float32(place - np.float32(entry))
    left = table[entry] if entry >= 0 else np.float32(0)
    right = table[entry + 1] if entry + 1 < table.size else np.float32(0)
    return np.float32(left + np.float32(rest * np.float32(right - left)))


@inner
def _nearest(output: int, singles: np.ndarray, wholes: np.ndarray) -> np.int64:
    """Return the input column nearest to an output column; it may lie outside the input."""
    origin, step = singles[ORIGIN], singles[STEP]
    if step == _ONE:
        return np.int64(np.floor(np.float32(origin + _HALF))) + output + wholes[OFFSET]
    place = np.float32(np.float32(np.float32(output) + _HALF) * step)
    return np.int64(np.floor(np.float32(origin + place))) + wholes[OFFSET]


@kernel
def read_span(
    singles: np.ndarray, wholes: np.ndarray, kind: int, is_width: bool, first: int, count: int
) -> tuple[np.int64, np.int64]:
    """Return the range of input positions, end exclusive, that a range of output positions depends on.

    Args:
        singles, wholes: the axis's rows of the arrays that :func:`fill_passes` filled.
        kind: the axis's filter.
        is_width: whether the axis is the last one.
        first, count: the first output position, and the number of positions, at least one.
    """
    low, high, last = wholes[LOW], wholes[HIGH], first + count - 1
    if kind != NEAREST:
        # Rounding keeps the order, so the outermost windows are those of the first and the last position.
        one = window_start(first, singles[ORIGIN], singles[STEP], wholes[OFFSET])
        other = window_start(last, singles[ORIGIN], singles[STEP], wholes[OFFSET])
    elif is_width:
        one, other = _nearest(first, singles, wholes), _nearest(last, singles, wholes)
    else:
        step = singles[STEP]
        edge = np.float32(singles[ORIGIN] + np.float32(_HALF * step))
        one = other = np.int64(0)
        for output in range(last + 1):
            if output == first:
                one = np.int64(np.floor(edge)) + wholes[OFFSET]
            if output == last:
                other = np.int64(np.floor(edge)) + wholes[OFFSET]
            edge = np.float32(edge + step)
    start, stop = min(one, other), max(one, other) + wholes[TAPS]
    return min(max(start, low), high - 1), max(min(stop, high), low + 1)


@kernel
def fill_taps(
    singles: np.ndarray, wholes: np.ndarray, table: np.ndarray, first: int, starts: np.ndarray, weights: np.ndarray
) -> None:
    """Compute the taps of consecutive output positions of an axis.

    Args:
        singles, wholes: the axis's rows of the arrays that :func:`fill_passes` filled.
        table: the filter's table.
        first: the first of the output positions.
        starts: filled with the first input position of each window; positions outside the input stand for its edge.
        weights: filled, float32 of shape (outputs, taps).
    """
    origin, step, scale = singles[ORIGIN], singles[STEP], singles[SCALE]
    for row in range(starts.size):
        exact = np.float32(np.float32(np.float32(first + row) * step) + origin)
        whole = np.float32(np.ceil(exact))
        total, rest = np.float32(0), np.float32(whole - exact)
        for tap in range(weights.shape[1]):
            weight = _value(np.float32(np.float32(rest + np.float32(tap)) * scale), table)
            weights[row, tap] = weight
            total = np.float32(total + weight)
        starts[row] = np.int64(whole) + wholes[OFFSET]
        if total != np.float32(0):
            for tap in range(weights.shape[1]):
                weights[row, tap] = weights[row, tap] / total


@kernel
def fill_nearest(singles: np.ndarray, wholes: np.ndarray, is_width: bool, first: int, positions: np.ndarray) -> None:
    """Compute the input positions nearest to consecutive output positions of an axis.

    Args:
        singles, wholes: the axis's rows of the arrays that :func:`fill_passes` filled.
        is_width: whether the axis is the last one; along other axes, steps are added up one by one, with the rounding that follows.
        first: the first of the output positions.
        positions: filled with the input positions.
    """
    low, high, step = wholes[LOW], wholes[HIGH], singles[STEP]
    if is_width:
        for row in range(positions.size):
            positions[row] = min(max(_nearest(first + row, singles, wholes), low), high - 1)
        return
    edge = np.float32(singles[ORIGIN] + np.float32(_HALF * step))
    for _ in range(first):
        edge = np.float32(edge + step)
    for row in range(positions.size):
        positions[row] = min(max(np.int64(np.floor(edge)) + wholes[OFFSET], low), high - 1)
        edge = np.float32(edge + step)


@inner
def _rest_of(begin: int, end: int, lanes: int, rest: np.ndarray) -> int:
    """Set ``rest`` to the part of a range that is left after whole groups of ``lanes``; return where the next range begins."""
    rest[0], rest[1] = begin + max(end - begin, 0) // lanes * lanes, end
    return max(begin, end)


@inner
def _fill_rests_of_columns(singles: np.ndarray, wholes: np.ndarray, width: int, lanes: int, rests: np.ndarray) -> None:
    """Set ``rests`` to the ranges of columns that are left over when DALI resamples columns in groups of ``lanes``.

    Columns whose windows lie inside the input are grouped separately from those to the left and to the right of them.
    """
    origin, step = singles[ORIGIN], singles[STEP]
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
    reached = _rest_of(0, min(begin, end), lanes, rests[0])
    reached = _rest_of(reached, begin, lanes, rests[1])
    reached = _rest_of(reached, end, lanes, rests[2])
    _rest_of(reached, width, lanes, rests[3])


@kernel
def fill_rests(
    order: np.ndarray,
    size_out: np.ndarray,
    kinds: np.ndarray,
    singles: np.ndarray,
    wholes: np.ndarray,
    channels: int,
    lanes: int,
    rests: np.ndarray,
) -> None:
    """Find the values of a line that DALI rounds one by one, halves away from zero; it rounds all other values in groups, halves to even.

    Args:
        order, kinds, singles, wholes: the passes, as filled by :func:`fill_passes`.
        size_out: extents of the output.
        channels: channels of a pixel.
        lanes: the number of values that are rounded together; 0: results are not rounded.
        rests: filled, int64 of shape (:data:`RESTS`, 2): the begin and end of each range of values that are rounded one by one; ranges may
            be empty. If the depth is resampled last, a line is a whole slice.
    """
    rests[:] = 0
    if lanes == 0:
        return
    axes = order.size
    last, values = order[axes - 1], size_out[axes - 1] * channels
    if last < axes - 2:
        values *= size_out[axes - 2]
    if kinds[last] == NEAREST:
        rests[0, 1] = values
    elif last == axes - 1:
        _fill_rests_of_columns(singles[last], wholes[last], size_out[last], lanes, rests)
        rests *= channels
    else:
        rests[0, 0], rests[0, 1] = values // lanes * lanes, values
