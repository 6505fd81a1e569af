"""Tables of resampling filters, worked out on GPU: for images of ever new sizes that takes the host too long."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from penstock.data_types import DALIInterpType
from penstock.kernels.cpu.tables import FROM_ORIGIN, NEAREST_COLUMN, NEAREST_ROW, WITHIN_RADIUS, plan_tables
from penstock.kernels.cuda.launch import Located, launch, scratch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Double, Float, Int32, Records, layout_of
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


@functools.cache
def _filters() -> tuple[np.ndarray, np.ndarray]:
    """All filters' values one behind the other; and by number of a filter its support, where its values begin, how many."""
    kinds = [("support", np.float64), ("values", np.int32), ("entries", np.int32)]
    known = np.zeros(max(int(kind) for kind in DALIInterpType) + 1, np.dtype(kinds, align=True))
    known["support"] = 1
    parts: list[np.ndarray] = []
    for kind in DALIInterpType:
        own = tabulated(kind) if kind in TABULATED else np.zeros(0)
        known[int(kind)] = SUPPORT.get(kind, 1.0), sum(part.size for part in parts), own.size
        parts.append(own)
    return np.concatenate(parts), known


def fill_tables(
    vertical: AxisPlans, horizontal: AxisPlans, copied: np.ndarray
) -> tuple[Located, Located, list[np.ndarray]]:
    """Has the tables of both axes worked out: an image's weights lie row by row for its height, and column by column for
    its width.

    Args:
        vertical, horizontal: of as many images.
        copied: floats that lie before the weights.

    Returns:
        The memory of the starts, that of the weights, and the structs of each axis, which tell where each image's are: one for
        all images that are alike.
    """
    values, filters = _filters()
    rows = np.empty(2 * len(vertical.kinds), layout_of(_Taps).dtype)
    down, across, num_starts, num_weights = plan_tables(
        rows,
        _columns(vertical),
        _columns(horizontal),
        (vertical.antialias, horizontal.antialias),
        filters,
        MAX_SUPPORT,
        len(copied),
    )
    rows = rows[: down + across]
    (starts,) = scratch([(num_starts,)], np.int32, kept=True)
    (weights,) = scratch([(num_weights,)], np.float32, kept=True)
    launch(
        SOURCE.kernel("fill_taps"),
        Records(_Taps, rows),
        (rows["outputs"] + (THREADS - 1)) // THREADS,
        values,
        copied if len(copied) else np.zeros(1, np.float32),
        np.int32(len(copied)),
        starts,
        weights,
        once=True,
    )
    return starts, weights, [rows[:down], rows[down:]]


def _columns(plans: AxisPlans) -> tuple[np.ndarray, ...]:
    """What compiled code takes; of one kind, so that it is compiled once."""
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
