"""Tables of resampling filters, worked out on GPU: for images of ever new sizes that takes the host too long."""

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
    """One axis of an image.

    Attributes:
        start, step: of the region in the input, and from one output position to the next.
        width, radius: of the filter: input samples for a unit of its distance, and in all.
        origin, single_step: in single precision, where that decides.
        size: of the input.
        taps, used: how many taps the filter has, and how many of them the table.
        starts, weights: where the tables begin.
        values, entries: where the filter's values are, and how many; none: a triangle.
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
    """Filters of one axis of many images.

    Attributes:
        starts, weights: where each image's begin, in the memory that all share.
        taps: for each output position.
    """

    starts: np.ndarray
    weights: np.ndarray
    taps: np.ndarray


@functools.cache
def _filters() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All filters' values one behind the other; and by number of a filter where its begin, how many, and its support."""
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
    """Has the tables of both axes worked out: an image's weights lie row by row for its height, and column by column for
    its width.

    Args:
        vertical, horizontal: of as many images.
        copied: floats that lie before the weights.

    Returns:
        The memory of the starts, that of the weights, and where each image's are.
    """
    axes = [_rows(vertical, False), _rows(horizontal, True)]
    count = len(axes[0])
    # Where all images are alike, they share their tables.
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
    """What the kernel needs of each image's axis, but for where its tables are; ``last``: it is the width."""
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
