"""Boxes as `slice` takes them: by the inputs anchor and shape, or by arguments for their starts and ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.axes import resolve_axes
from penstock.kernels.resize_shapes import round_half_away
from penstock.kernels.windows import Region
from penstock.schema import Operator, Sample, Workspace

_STARTS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


def check_box_arguments(operator: Operator) -> None:
    """Raises RuntimeError for arguments that do not go together."""
    for names in (_STARTS, _ENDS):
        given = [name for name in names if operator.given(name)]
        if len(given) > 1:
            raise RuntimeError(f"{' and '.join('`' + name + '`' for name in given)} cannot be given together")


def check_box_inputs(operator: Operator, workspace: Workspace) -> None:
    """Raises RuntimeError unless the box is given just once: by inputs or by arguments."""
    named = any(operator.given(name) for name in _STARTS + _ENDS)
    if len(workspace.inputs) == 2 and not named:
        raise RuntimeError("`slice` takes its anchor and shape both as inputs, got only the anchor")
    if len(workspace.inputs) > 1 and named:
        raise RuntimeError("The box is given twice: by inputs and by arguments")
    if len(workspace.inputs) == 1 and not named:
        raise RuntimeError(
            "`slice` needs a box: give anchor and shape as inputs, or arguments such as `start` and `end`"
        )


def box_region(sample: Sample, shape: Sequence[int], layout: str) -> Region:
    """The box that the inputs or arguments of a sample ask for, in data of ``shape``; it may reach outside.

    Raises:
        RuntimeError: the box is of another rank, or ends before it starts.
    """
    anchor, extents = [0] * len(shape), list(shape)
    count = _count(sample)
    named_axes = _axes(sample, layout, len(shape))
    axes = named_axes if named_axes is not None else list(range(count))
    if count not in (len(axes), 1) and named_axes is not None:
        raise RuntimeError(f"The box has {count} entries, but {len(axes)} axes are named")
    sizes = [shape[axis] for axis in axes[:count] if axis < len(shape)]
    if len(sizes) != count:
        raise RuntimeError(f"The box has {count} entries, but the data has {len(shape)} dimensions")
    starts, ends = _bounds(sample, sizes)
    for axis, start, end in zip(axes, starts, ends):
        anchor[axis], extents[axis] = start, end - start
    return Region(tuple(anchor), tuple(extents))


def _axes(sample: Sample, layout: str, ndim: int) -> list[int] | None:
    """The dimensions that the box speaks of; None: the first ones, in order."""
    if sample.given("axes"):
        axes = sample["axes"]
        return resolve_axes(axes, None, layout, ndim) if axes else None
    names = sample["axis_names"]
    if not layout and not sample.given("axis_names"):
        return resolve_axes(sample["axes"], None, layout, ndim)
    if not names:
        return None
    return resolve_axes(None, names, layout, ndim)


def _count(sample: Sample) -> int:
    if len(sample.shapes) > 1:
        return math.prod(sample.shapes[1])
    name = next(name for name in _STARTS + _ENDS if sample.given(name))
    return len(sample[name])


def _bounds(sample: Sample, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    if len(sample.shapes) == 3:
        anchor, shape = (_host(data).reshape(-1).astype(np.float64).tolist() for data in sample.inputs[1:])
        integral = [data.dtype.kind in "iu" for data in sample.inputs[1:]]
        if sample["normalized_anchor"] and not integral[0]:
            anchor = [value * size for value, size in zip(anchor, sizes)]
        if sample["normalized_shape"] and not integral[1]:
            shape = [value * size for value, size in zip(shape, sizes)]
        return _whole_bounds(anchor, [a + s for a, s in zip(anchor, shape)])
    starts = _starts(sample, sizes)
    return _whole_bounds(starts, _ends(sample, sizes, starts))


def _whole_bounds(starts: Sequence[float], ends: Sequence[float]) -> tuple[list[int], list[int]]:
    for start, end in zip(starts, ends):
        if end < start:
            raise RuntimeError(f"The slice ends before it starts: at {end:g}, from {start:g}")
    return _rounded(starts), _rounded(ends)


def _starts(sample: Sample, sizes: Sequence[int]) -> list[float]:
    if sample.given("rel_start"):
        return [value * size for value, size in zip(sample["rel_start"], sizes)]
    return [float(value) for value in sample["start"]] if sample.given("start") else [0.0] * len(sizes)


def _ends(sample: Sample, sizes: Sequence[int], starts: Sequence[float]) -> list[float]:
    if sample.given("end"):
        return [float(value) for value in sample["end"]]
    if sample.given("rel_end"):
        return [value * size for value, size in zip(sample["rel_end"], sizes)]
    if sample.given("shape"):
        return [start + value for start, value in zip(starts, sample["shape"])]
    if sample.given("rel_shape"):
        return [start + value * size for start, value, size in zip(starts, sample["rel_shape"], sizes)]
    return [float(size) for size in sizes]


def _host(data: object) -> np.ndarray:
    return data if isinstance(data, np.ndarray) else data.get()  # type: ignore[attr-defined]


def _rounded(values: Sequence[float]) -> list[int]:
    return [round_half_away(float(np.float32(value))) for value in values]
