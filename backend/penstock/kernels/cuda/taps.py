"""Tables of resampling filters, computed on the GPU: with new image sizes in every batch, the host would be too
slow."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.data_types import DALIInterpType
from penstock.kernels.cpu.tables import FROM_ORIGIN, NEAREST_COLUMN, NEAREST_ROW, WITHIN_RADIUS, fill_tables_plans
from penstock.kernels.cuda.launch import Located, launch, scratch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Double, Float, Int32, Records, blank_records
from penstock.kernels.filters import MAX_SUPPORT, SUPPORT, TABULATED, tabulated
from penstock.kernels.resize_shapes import AxisPlans


class _Taps(NamedTuple):
    """The descriptor of one axis of an image.

    Attributes:
        start, step: of the region in the input, and from one output position to the next.
        width, radius: of the filter: input samples per unit of its argument, and its radius in input samples.
        origin, single_step: in single precision, where results depend on that.
        size: of the input.
        taps, used: number of taps of the filter, and how many of them are in the table.
        starts, weights: offsets of the tables.
        values, entries: offset and number of the filter's tabulated values; 0 entries: a triangle.
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


@dataclass(slots=True)
class Tables:
    """Filters along one axis, for many images.

    Attributes:
        starts, weights: offset of each image's tables in the shared memory.
        taps: taps for each output position.
    """

    starts: np.ndarray
    weights: np.ndarray
    taps: np.ndarray


@functools.cache
def _filters() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The tabulated values of all filters, concatenated; and, by filter number, their offset, count and support."""
    count = max(int(kind) for kind in DALIInterpType) + 1
    places, entries, supports = np.zeros(count, np.int32), np.zeros(count, np.int32), np.ones(count)
    parts: list[np.ndarray] = []
    for kind in DALIInterpType:
        supports[int(kind)] = SUPPORT.get(kind, 1.0)
        if kind in TABULATED:
            places[int(kind)], entries[int(kind)] = sum(part.size for part in parts), tabulated(kind).size
            parts.append(tabulated(kind))
    return np.concatenate(parts), places, entries, supports


def fill_tables(
    vertical: AxisPlans, horizontal: AxisPlans, copied: np.ndarray
) -> tuple[Located, Located, list[Tables]]:
    """Computes the tables of both axes on the GPU. Weights are stored row by row for the height, and column by column
    for the width.

    Args:
        vertical, horizontal: of the same number of images.
        copied: floats to put before the weights.

    Returns:
        The memory of the starts, that of the weights, and the offsets of each image's tables for both axes.
    """
    axes = [_rows(vertical, False), _rows(horizontal, True)]
    count = len(axes[0])
    # If all images are alike, they share their tables.
    parts = [axis[:1] if _all_equal(axis) else axis for axis in axes]
    descriptors = Records(_Taps, np.concatenate(parts))
    outputs = descriptors["outputs"].astype(np.int64)
    sizes = outputs * descriptors["used"]
    start_ends, weight_ends = np.cumsum(outputs), np.cumsum(sizes) + len(copied)
    descriptors["starts"], descriptors["weights"] = start_ends - outputs, weight_ends - sizes
    (starts,) = scratch([(int(start_ends[-1]),)], np.int32, kept=True)
    (weights,) = scratch([(int(weight_ends[-1]),)], np.float32, kept=True)
    launch(
        SOURCE.kernel("fill_taps"),
        descriptors,
        -(-outputs // THREADS),
        _filters()[0],
        copied if len(copied) else np.zeros(1, np.float32),
        np.int32(len(copied)),
        starts,
        weights,
        once=True,
    )
    vertical_part, horizontal_part = np.split(descriptors.rows, [len(parts[0])])
    return starts, weights, [_tables(vertical_part, count), _tables(horizontal_part, count)]


def _tables(rows: np.ndarray, count: int) -> Tables:
    columns = [rows[name] for name in ("starts", "weights", "used")]
    return Tables(*(columns if len(rows) == count else (column.repeat(count) for column in columns)))


def _all_equal(axis: np.ndarray) -> bool:
    rows = axis.view(np.uint8).reshape(len(axis), -1)
    return bool((rows == rows[0]).all())


def _rows(plans: AxisPlans, last: bool) -> np.ndarray:
    """The descriptors of each image's axis, without the offsets of its tables; ``last``: this axis is the width."""
    _, values, entries, supports = _filters()
    kinds, count = plans.kinds, len(plans.kinds)
    reals, singles = np.empty((4, count)), np.empty((2, count), np.float32)
    taps, modes = np.empty((2, count), np.int64)
    fill_tables_plans(
        plans.size_in,
        plans.size_out,
        plans.start,
        plans.end,
        kinds,
        plans.antialias,
        last,
        supports,
        entries,
        MAX_SUPPORT,
        reals,
        singles,
        taps,
        modes,
    )
    descriptors = blank_records(_Taps, count)
    for name, column in zip(_Taps._fields, (*reals, *singles)):
        descriptors[name] = column
    used = np.minimum(taps, plans.size_in)
    descriptors["size"], descriptors["outputs"] = plans.size_in, plans.count
    descriptors["first"] = plans.first + plans.mirrored * (plans.count - 1)
    descriptors["direction"] = 1 - 2 * plans.mirrored.astype(np.int32)
    descriptors["kind"], descriptors["taps"], descriptors["used"] = modes, taps, used
    descriptors["output_stride"] = 1 if last else used
    descriptors["tap_stride"] = plans.count if last else 1
    descriptors["values"], descriptors["entries"] = values[kinds], entries[kinds]
    return descriptors.rows
