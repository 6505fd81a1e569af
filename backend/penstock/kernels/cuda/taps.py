"""Tables of resampling filters, computed on the GPU: if every batch has new image sizes, the host would be too slow."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from penstock.data_types import DALIInterpType
from penstock.kernels.cpu.tables import FROM_ORIGIN, NEAREST_COLUMN, NEAREST_ROW, WITHIN_RADIUS, plan_tables
from penstock.kernels.cuda.launch import KernelLaunch, Located, scratch
from penstock.kernels.cuda.sources import THREADS, Kernel, KernelSource
from penstock.kernels.cuda.structs import Double, Float, Int32, Records, layout_of
from penstock.kernels.filters import MAX_SUPPORT, SUPPORT, TABULATED, tabulated
from penstock.kernels.resize_shapes import AxisPlans

# Starts are as large as weights.
_WEIGHT = np.dtype(np.float32)
# The alignment of the weights, in elements: a multiple of what one instruction reads.
_ALIGNMENT = 64


class _Taps(NamedTuple):
    """The descriptor of one axis of an image.

    Attributes:
        start, step: the start of the region in the input, and the distance from one output position to the next.
        width, radius: the filter's width, in input samples per unit of its argument, and its radius, in input samples.
        origin, single_step: the start and step in single precision, where results depend on that.
        size: the input's extent on this axis.
        taps, used: the number of taps of the filter, and how many of them the table contains.
        starts, weights: the offsets of this axis's starts and weights in the tables.
        values, entries: the offset and the number of the filter's tabulated values; 0 entries: a triangular filter.
    """

    start: Double
    step: Double
    width: Double
    radius: Double
    origin: Float
    single_step: Float
    size: Int32
    outputs: Int32
    first: Int32
    direction: Int32
    kind: Int32
    taps: Int32
    used: Int32
    starts: Int32
    weights: Int32
    output_stride: Int32
    tap_stride: Int32
    values: Int32
    entries: Int32


SOURCE = KernelSource(
    __file__,
    _Taps,
    NEAREST_COLUMN=NEAREST_COLUMN,
    NEAREST_ROW=NEAREST_ROW,
    WITHIN_RADIUS=WITHIN_RADIUS,
    FROM_ORIGIN=FROM_ORIGIN,
)


TAPS = layout_of(_Taps).dtype
"""The type of a table's descriptor."""


@functools.cache
def _filters() -> tuple[np.ndarray, np.ndarray]:
    """Return the tabulated values of all filters, concatenated; and for each filter, by its number, its support, and the offset and number
    of its values.
    """
    kinds = [("support", np.float64), ("values", np.int32), ("entries", np.int32)]
    known = np.zeros(max(int(kind) for kind in DALIInterpType.__members__.values()) + 1, np.dtype(kinds, align=True))
    known["support"] = 1
    parts: list[np.ndarray] = []
    for kind in DALIInterpType.__members__.values():
        own = tabulated(kind) if kind in TABULATED else np.zeros(0)
        known[int(kind)] = SUPPORT.get(kind, 1.0), sum(part.size for part in parts), own.size
        parts.append(own)
    return np.concatenate(parts), known


class FilterTables(NamedTuple):
    """Tables for both axes of a batch's images, yet to be computed on the GPU.

    Attributes:
        rows: the descriptors of the tables: first of the tables for heights, then of those for widths. On each axis, there is a table for
            each image, or a single one if it is the same for all images.
        heights: the number of tables for heights.
        starts, weights: the number of starts and of weights in all tables, where copied values count as weights.
    """

    rows: np.ndarray
    heights: int
    starts: int
    weights: int

    @classmethod
    def planned(cls, vertical: AxisPlans, horizontal: AxisPlans, copied: int) -> FilterTables:
        """Plan the tables for the vertical and horizontal plans of images; ``copied``: the number of floats to put before the weights."""
        rows = blank_tables(len(vertical.kinds))
        antialias = vertical.antialias, horizontal.antialias
        counts = plan_tables(rows, _columns(vertical), _columns(horizontal), antialias, *known_filters(), copied)
        return cls.of_rows(rows, *counts)

    @classmethod
    def of_rows(cls, rows: np.ndarray, down: int, across: int, starts: int, weights: int) -> FilterTables:
        """Make an instance from the results of :func:`penstock.kernels.cpu.tables.plan_tables`."""
        return cls(rows[: down + across], down, starts, weights)

    @property
    def down(self) -> np.ndarray:
        """The descriptors of the tables for heights."""
        return self.rows[: self.heights]

    @property
    def across(self) -> np.ndarray:
        """The descriptors of the tables for widths."""
        return self.rows[self.heights :]

    @property
    def starts_bytes(self) -> int:
        """The size of the starts in bytes, rounded up so that weights after them are aligned as in separate memory."""
        return -(-self.starts // _ALIGNMENT) * _ALIGNMENT * _WEIGHT.itemsize

    @property
    def weights_bytes(self) -> int:
        """The size of the weights in bytes."""
        return self.weights * _WEIGHT.itemsize

    def memory(self) -> tuple[Located, Located]:
        """Allocate memory for the starts and for the weights. Weights are stored row by row for the height, and column by
        column for the width.
        """
        whole = self.starts_bytes // _WEIGHT.itemsize
        starts, weights = scratch([(whole,), (self.weights,)], np.int32, kept=True)
        weights.dtype = _WEIGHT
        return starts, weights

    def filling(self, starts: Located, weights: Located, copied: np.ndarray | None) -> KernelLaunch:
        """Return the launch that computes the starts and the weights.

        Args:
            starts, weights: the arrays to fill.
            copied: floats to put before the weights, if there are any.
        """
        count = 0 if copied is None else len(copied)
        extra = self.values(), copied if count else None, np.int32(count), starts, weights
        blocks = (self.rows["outputs"] + (THREADS - 1)) // THREADS
        return KernelLaunch(self.kernel(), Records(_Taps, self.rows), blocks, extra, once=True)

    @staticmethod
    def kernel() -> Kernel:
        """Return the kernel that fills tables."""
        return SOURCE.kernel("fill_taps")

    @staticmethod
    def values() -> np.ndarray:
        """Return the tabulated values of all filters."""
        return _filters()[0]


def blank_tables(images: int) -> np.ndarray:
    """Return zeroed descriptors of the tables for both axes of this many images."""
    return np.empty(2 * images, TAPS)


def known_filters() -> tuple[np.ndarray, float]:
    """Return the filters in the form that :func:`penstock.kernels.cpu.tables.plan_tables` expects."""
    return _filters()[1], MAX_SUPPORT


def _columns(plans: AxisPlans) -> tuple[np.ndarray, ...]:
    """Return the plans as contiguous arrays, so that one compiled function handles all of them."""
    columns = (
        plans.size_in,
        plans.size_out,
        plans.start,
        plans.end,
        plans.kinds,
        plans.first,
        plans.count,
        plans.mirrored,
    )
    return tuple(map(np.ascontiguousarray, columns))
