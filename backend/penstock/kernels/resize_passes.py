"""The passes of a resize: one for each axis, in the order that DALI estimates to be the cheapest, with the taps that DALI computes.

Filters are tables with interpolation between entries. At distance d, the triangle is ``1 - |d|``; cubic: Catmull-Rom
spline (a = -0.5; Keys, "Cubic convolution interpolation for digital image processing", 1981); Lanczos with three lobes (Duchon,
"Lanczos filtering", 1979); Gaussian ``exp(-4 d^2)``. All but the triangle have 32 entries for each unit of d.
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
# DALI resamples as many values at a time as fit into a register, and rounds the remaining ones differently.
_REGISTER_BYTES = 16


class EdgeTaps(NamedTuple):
    """The taps of one axis, where positions outside the input stand for its edge.

    Attributes:
        starts: the first input position of each output position, int32 of shape (n,).
        weights: float32 of shape (n, taps).
        low, high: the range of input positions that are read.
    """

    starts: np.ndarray
    weights: np.ndarray
    low: int
    high: int


class Passes(NamedTuple):
    """The passes of an image.

    Attributes:
        order: the numbers of the axes, in the order of passes.
        size_out: the extents of the output.
        filters: the axes' filters.
        singles, wholes: the descriptions of the axes that :func:`penstock.kernels.cpu.axis_passes.fill_passes` computes.
    """

    order: tuple[int, ...]
    size_out: tuple[int, ...]
    filters: tuple[DALIInterpType, ...]
    singles: np.ndarray
    wholes: np.ndarray

    def taps(self, axis: int, outputs: range) -> EdgeTaps:
        """Return the taps of an axis for some of its output positions."""
        from penstock.kernels.cpu.axis_passes import HIGH, LOW, TAPS, fill_nearest, fill_taps

        singles, wholes, kind = self.singles[axis], self.wholes[axis], self.filters[axis]
        starts = np.empty(len(outputs), np.int32)
        if kind == INTERP_NN:
            weights = _ones(len(outputs))
            fill_nearest(singles, wholes, axis == len(self.filters) - 1, outputs.start, starts)
        else:
            weights = np.empty((len(outputs), int(wholes[TAPS])), np.float32)
            fill_taps(singles, wholes, filter_table(kind), outputs.start, starts, weights)
        return EdgeTaps(starts, weights, int(wholes[LOW]), int(wholes[HIGH]))

    def span(self, axis: int, first: int, count: int) -> tuple[int, int]:
        """Return the range of input positions of an axis on which ``count`` output positions from ``first`` on depend."""
        from penstock.kernels.cpu.axis_passes import read_span

        if not count:
            return 0, 0
        kind, is_width = int(self.filters[axis]), axis == len(self.filters) - 1
        start, stop = read_span(self.singles[axis], self.wholes[axis], kind, is_width, first, count)
        return int(start), int(stop)

    def rests(self, channels: int, dtype: np.dtype) -> np.ndarray:
        """Return the ranges of the values of a line of pixels that DALI rounds one by one, differently from the others; see
        :func:`penstock.kernels.cpu.axis_passes.fill_rests`.

        Args:
            channels: the number of channels of a pixel.
            dtype: the dtype to which values are rounded.
        """
        from penstock.kernels.cpu.axis_passes import RESTS, fill_rests

        rests, kinds = np.empty((RESTS, 2), np.int64), np.array([int(kind) for kind in self.filters])
        order, sizes = np.array(self.order), np.array(self.size_out)
        fill_rests(order, sizes, kinds, self.singles, self.wholes, channels, rounded_together(dtype), rests)
        return rests


def rounded_together(dtype: np.dtype) -> int:
    """Return the number of values of a type that DALI rounds at a time; 0: values of this type are not rounded."""
    return 0 if dtype.kind == "f" else _REGISTER_BYTES // dtype.itemsize


@functools.lru_cache(maxsize=256)
def passes(axes: tuple[AxisPlan, ...], filters: tuple[DALIInterpType, ...], antialias: bool) -> Passes:
    """Return the passes of an image of two or three axes.

    Args:
        axes: the plans of the image's axes.
        filters: the filter of each axis.
        antialias: whether filters widen when an axis shrinks.
    """
    from penstock.kernels.cpu.axis_passes import fill_passes

    count = len(axes)
    sizes_in, sizes_out = (np.array([getattr(axis, name) for axis in axes]) for name in ("size_in", "size_out"))
    starts, ends = (np.array([getattr(axis, name) for axis in axes], np.float64) for name in ("start", "end"))
    order, singles, wholes = np.empty(count, np.int64), np.empty((count, 3), np.float32), np.empty((count, 4), np.int64)
    kinds = np.array([int(kind) for kind in filters])
    fill_passes(sizes_in, sizes_out, starts, ends, kinds, antialias, filter_tables()[1], order, singles, wholes)
    return Passes(tuple(order.tolist()), tuple(axis.size_out for axis in axes), filters, singles, wholes)


@functools.cache
def filter_table(kind: DALIInterpType) -> np.ndarray:
    """Return the values of a filter from one of its ends to the other, float32. The array is the same object in each call, so that its
    address can be stored.
    """
    from penstock.kernels.cpu.axis_passes import lanczos3_value

    if kind not in _TABLES:
        return np.array([0, 1, 0], np.float32)
    radius, value = _TABLES[kind]
    distances = np.abs(np.arange(-radius * _PER_UNIT, radius * _PER_UNIT + 1)) / _PER_UNIT
    if value is None:
        return np.array([lanczos3_value(np.float32(distance)) for distance in distances], np.float32)
    return np.array([value(distance) for distance in distances], np.float32)


@functools.cache
def filter_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays indexed by a filter's number: the addresses of the filters' tables, and their numbers of entries."""
    tables = [filter_table(DALIInterpType(kind)) for kind in sorted(map(int, DALIInterpType.__members__.values()))]
    return np.array([table.ctypes.data for table in tables]), np.array([len(table) for table in tables])


def _cubic(d: float) -> float:
    if d > 1:
        return ((-0.5 * d + 2.5) * d - 4) * d + 2
    return (1.5 * d - 2.5) * d * d + 1


_TABLES: dict[DALIInterpType, tuple[int, Callable[[float], float] | None]] = {
    DALIInterpType.INTERP_CUBIC: (2, _cubic),
    DALIInterpType.INTERP_LANCZOS3: (3, None),
    DALIInterpType.INTERP_GAUSSIAN: (1, lambda d: math.exp(-4 * d * d)),
}


@functools.lru_cache(maxsize=64)
def _ones(count: int) -> np.ndarray:
    return np.ones((count, 1), np.float32)
