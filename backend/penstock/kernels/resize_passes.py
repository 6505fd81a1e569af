"""The passes of a resize: one for each axis, in the order that DALI finds cheapest, with the windows and weights that it computes.

Filters are tables, between whose entries values are interpolated. At distance d, the triangle is ``1 - |d|``; cubic: Catmull-Rom
spline (a = -0.5; Keys, "Cubic convolution interpolation for digital image processing", 1981); Lanczos with three lobes (Duchon,
"Lanczos filtering", 1979); Gaussian ``exp(-4 d^2)``. These have 32 entries for each unit of d.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penstock.data_types import INTERP_NN, DALIInterpType
from penstock.kernels.resize_shapes import AxisPlan

_PER_UNIT = 32
# DALI resamples as many values at a time as fit into a register, and rounds these otherwise than those that are left over.
_REGISTER_BYTES = 16


class EdgeTaps(NamedTuple):
    """The filter of one axis, where positions beyond those that are read are those of their edge.

    Attributes:
        starts: first input position of each output position, int32 of shape (n,).
        weights: float32 of shape (n, taps).
        outputs: the output positions, int64 of shape (n,).
        low, high: the range of input positions that are read.
    """

    starts: np.ndarray
    weights: np.ndarray
    outputs: np.ndarray
    low: int
    high: int

    @property
    def span(self) -> tuple[int, int]:
        """The range of positions that the filter reads."""
        if not self.starts.size:
            return 0, 0
        first, stop = int(self.starts.min()), int(self.starts.max()) + self.weights.shape[1]
        return min(max(first, self.low), self.high - 1), max(min(stop, self.high), self.low + 1)

    def part(self, outputs: slice) -> EdgeTaps:
        """The filter of some of the output positions."""
        return EdgeTaps(self.starts[outputs], self.weights[outputs], self.outputs[outputs], self.low, self.high)

    def shifted(self, by: int) -> EdgeTaps:
        """The filter for an input that begins ``by`` positions earlier."""
        if not by:
            return self
        return self._replace(starts=self.starts + np.int32(by), low=self.low + by, high=self.high + by)

    def reversed(self) -> EdgeTaps:
        """The filter with its output positions in reverse order."""
        starts, weights, outputs = (
            np.ascontiguousarray(rows[::-1]) for rows in (self.starts, self.weights, self.outputs)
        )
        return EdgeTaps(starts, weights, outputs, self.low, self.high)


class Passes(NamedTuple):
    """The passes of an image.

    Attributes:
        order: the axes, in the order of passes.
        size_out: extents of the output.
        filters: of the axes.
        singles, wholes: descriptions of the axes, as in :func:`penstock.kernels.cpu.axis_passes.fill_passes`.
    """

    order: tuple[int, ...]
    size_out: tuple[int, ...]
    filters: tuple[DALIInterpType, ...]
    singles: np.ndarray
    wholes: np.ndarray

    def taps(self, axis: int, outputs: range) -> EdgeTaps:
        """The filter of an axis, for some of its output positions."""
        from penstock.kernels.cpu.axis_passes import HIGH, LOW, TAPS, fill_nearest, fill_taps

        singles, wholes, kind = self.singles[axis], self.wholes[axis], self.filters[axis]
        numbers = np.arange(outputs.start, outputs.stop)
        starts = np.empty(len(numbers), np.int32)
        if kind == INTERP_NN:
            weights = _ones(len(numbers))
            fill_nearest(singles, wholes, axis == len(self.filters) - 1, numbers, starts)
        else:
            weights = np.empty((len(numbers), int(wholes[TAPS])), np.float32)
            fill_taps(singles, wholes, filter_table(kind), numbers, starts, weights)
        return EdgeTaps(starts, weights, numbers, int(wholes[LOW]), int(wholes[HIGH]))

    def left_over(self, channels: int, dtype: np.dtype, columns: np.ndarray) -> np.ndarray:
        """The values of a line of pixels that DALI rounds one by one, halves away from zero: their places, int64.

        It rounds several at a time elsewhere, halves to even numbers.

        Args:
            channels: of the pixels.
            dtype: to which they are rounded.
            columns: the output columns of the line. If the depth is resampled last, a line is a slice instead, and has all columns.
        """
        from penstock.kernels.cpu.axis_passes import fill_rests_of_columns

        axis, width = self.order[-1], self.size_out[-1]
        if dtype.kind == "f":
            return _NONE
        if self.filters[axis] == INTERP_NN:
            lines = self.size_out[-2] if axis < len(self.order) - 2 else 1
            return np.arange(lines * len(columns) * channels)
        lanes = _REGISTER_BYTES // dtype.itemsize
        if axis == len(self.order) - 1:
            marks = np.empty(width, bool)
            fill_rests_of_columns(self.singles[axis], self.wholes[axis], lanes, marks)
            marked = np.flatnonzero(marks[columns])
            return (marked[:, None] * channels + np.arange(channels)).ravel()
        if axis < len(self.order) - 2:
            count = self.size_out[-2] * width * channels
            return np.arange(count // lanes * lanes, count)
        count = width * channels
        if not count % lanes:
            return _NONE
        values = columns[:, None] * channels + np.arange(channels)
        return np.flatnonzero(values.ravel() >= count // lanes * lanes)


@functools.lru_cache(maxsize=256)
def passes(axes: tuple[AxisPlan, ...], filters: tuple[DALIInterpType, ...], antialias: bool) -> Passes:
    """The passes of an image of two or three axes.

    Args:
        axes: the plans of its axes.
        filters: the filter of each.
        antialias: whether filters widen when an axis shrinks.
    """
    from penstock.kernels.cpu.axis_passes import fill_passes

    count = len(axes)
    sizes_in, sizes_out = (np.array([getattr(axis, name) for axis in axes]) for name in ("size_in", "size_out"))
    starts, ends = (np.array([getattr(axis, name) for axis in axes], np.float64) for name in ("start", "end"))
    order, singles, wholes = np.empty(count, np.int64), np.empty((count, 3), np.float32), np.empty((count, 4), np.int64)
    kinds = np.array([int(kind) for kind in filters])
    fill_passes(sizes_in, sizes_out, starts, ends, kinds, antialias, _entries(), order, singles, wholes)
    return Passes(tuple(order.tolist()), tuple(axis.size_out for axis in axes), filters, singles, wholes)


@functools.cache
def filter_table(kind: DALIInterpType) -> np.ndarray:
    """The values of a filter from one of its ends to the other, float32."""
    from penstock.kernels.cpu.axis_passes import lanczos3_value

    if kind not in _TABLES:
        return np.array([0, 1, 0], np.float32)
    radius, value = _TABLES[kind]
    distances = np.abs(np.arange(-radius * _PER_UNIT, radius * _PER_UNIT + 1)) / _PER_UNIT
    if value is None:
        return np.array([lanczos3_value(np.float32(distance)) for distance in distances], np.float32)
    return np.array([value(distance) for distance in distances], np.float32)


@functools.cache
def _entries() -> np.ndarray:
    """The entries of each filter's table, by its number."""
    kinds = sorted(int(kind) for kind in DALIInterpType.__members__.values())
    return np.array([len(filter_table(DALIInterpType(kind))) for kind in kinds])


def _cubic(d: float) -> float:
    if d > 1:
        return ((-0.5 * d + 2.5) * d - 4) * d + 2
    return (1.5 * d - 2.5) * d * d + 1


_NONE = np.empty(0, np.int64)
_TABLES: dict[DALIInterpType, tuple[int, Callable[[float], float] | None]] = {
    DALIInterpType.INTERP_CUBIC: (2, _cubic),
    DALIInterpType.INTERP_LANCZOS3: (3, None),
    DALIInterpType.INTERP_GAUSSIAN: (1, lambda d: math.exp(-4 * d * d)),
}


@functools.lru_cache(maxsize=64)
def _ones(count: int) -> np.ndarray:
    return np.ones((count, 1), np.float32)
