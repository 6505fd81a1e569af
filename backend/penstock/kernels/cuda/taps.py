"""Tables of resampling filters, worked out on GPU: for images of ever new sizes that takes the host too long."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from penstock.kernels.cuda.launch import THREADS, Located, kernel, launch, scratch
from penstock.kernels.filters import MOST_SUPPORT, SUPPORT, TABULATED, gaussian_windows, tabulated
from penstock.kernels.resize_shapes import AxisPlans
from penstock.types import DALIInterpType

_NEAREST_COLUMN, _NEAREST_ROW, _WITHIN_RADIUS, _FROM_ORIGIN = range(4)
_TAPS = np.dtype(
    [
        *((name, np.float64) for name in ("start", "step", "width", "radius")),
        *((name, np.float32) for name in ("origin", "single_step")),
        *((name, np.int32) for name in ("size", "outputs", "first", "direction", "kind", "taps", "used")),
        *((name, np.int32) for name in ("starts", "weights", "output_stride", "tap_stride", "values", "entries")),
        ("padding", np.int32),
    ],
    align=True,
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
    axes = [_descriptors(vertical, False), _descriptors(horizontal, True)]
    count = len(axes[0])
    # Where all images are alike, they share their tables.
    parts = [axis[:1] if _alike(axis) else axis for axis in axes]
    descriptors = np.concatenate(parts)
    outputs = descriptors["outputs"].astype(np.int64)
    sizes = outputs * descriptors["used"]
    start_ends, weight_ends = np.cumsum(outputs), np.cumsum(sizes) + len(copied)
    descriptors["starts"], descriptors["weights"] = start_ends - outputs, weight_ends - sizes
    (starts,) = scratch([(int(start_ends[-1]),)], np.int32, kept=True)
    (weights,) = scratch([(int(weight_ends[-1]),)], np.float32, kept=True)
    launch(
        kernel("taps", "fill_taps"),
        descriptors,
        -(-outputs // THREADS),
        _filters()[0],
        copied if len(copied) else np.zeros(1, np.float32),
        np.int32(len(copied)),
        np.uint64(starts.address),
        np.uint64(weights.address),
        once=True,
    )
    vertical_part, horizontal_part = np.split(descriptors, [len(parts[0])])
    return starts, weights, [_tables(vertical_part, count), _tables(horizontal_part, count)]


def _tables(descriptors: np.ndarray, count: int) -> Tables:
    return Tables(*(np.broadcast_to(descriptors[name], count) for name in ("starts", "weights", "used")))


def _alike(axis: np.ndarray) -> bool:
    rows = axis.view(np.uint8).reshape(len(axis), -1)
    return bool((rows == rows[0]).all())


def _descriptors(plans: AxisPlans, last: bool) -> np.ndarray:
    """What the kernel needs of each image's axis, but for where its tables are; ``last``: it is the width."""
    _, values, entries, supports = _filters()
    kinds = plans.kinds
    step = (plans.end - plans.start) / plans.size_out
    support = supports[kinds]
    width = np.maximum(np.abs(step), 1.0) if plans.antialias else np.ones_like(step)
    width = np.minimum(width, MOST_SUPPORT / support)
    radius = support * width
    taps = np.floor(2 * radius).astype(np.int64) + 1
    # Of a triangle that is as wide as two samples, the third tap is nothing.
    taps[(entries[kinds] == 0) & (width == 1.0)] = 2
    descriptors = np.zeros(len(step), _TAPS)
    descriptors["kind"] = _WITHIN_RADIUS
    nearest, gaussian = kinds == DALIInterpType.INTERP_NN, kinds == DALIInterpType.INTERP_GAUSSIAN
    if nearest.any():
        start = plans.start.astype(np.float32)
        descriptors["kind"][nearest] = _NEAREST_COLUMN if last else _NEAREST_ROW
        descriptors["origin"][nearest] = start[nearest]
        single_step = (plans.end.astype(np.float32) - start) / plans.size_out.astype(np.float32)
        descriptors["single_step"][nearest] = single_step[nearest]
        taps[nearest] = 1
    if gaussian.any():
        origin, single_step, count = gaussian_windows(plans.start, step, width)
        descriptors["kind"][gaussian] = _FROM_ORIGIN
        descriptors["origin"][gaussian], descriptors["single_step"][gaussian] = origin[gaussian], single_step[gaussian]
        taps[gaussian] = count[gaussian]
    descriptors["start"], descriptors["step"] = plans.start, step
    descriptors["width"], descriptors["radius"] = width, radius
    descriptors["size"], descriptors["outputs"] = plans.size_in, plans.count
    descriptors["first"] = np.where(plans.mirrored, plans.first + plans.count - 1, plans.first)
    descriptors["direction"] = np.where(plans.mirrored, -1, 1)
    descriptors["taps"], descriptors["used"] = taps, np.minimum(taps, plans.size_in)
    descriptors["output_stride"] = 1 if last else descriptors["used"]
    descriptors["tap_stride"] = descriptors["outputs"] if last else 1
    descriptors["values"], descriptors["entries"] = values[kinds], entries[kinds]
    return descriptors
