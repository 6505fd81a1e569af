"""Boxes as `slice` takes them: by the inputs anchor and shape, or by arguments for their starts and ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, FLOAT64, INT32, INT64, DALIDataType, dtype_name
from penstock.kernels.axes import resolve_axes
from penstock.kernels.resize_shapes import round_half_away
from penstock.kernels.windows import Region
from penstock.schema import Operator, Sample, Workspace

# What data without a layout is taken for.
_DEFAULT_LAYOUTS = {2: "HW", 3: "HWC", 4: "DHWC"}
_STARTS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


def check_box_arguments(operator: Operator) -> None:
    """Raises RuntimeError for arguments that do not go together."""
    for names in (_STARTS, _ENDS):
        given = [name for name in names if operator.given(name)]
        if len(given) > 1:
            *others, last = (f'"{name}"' for name in names)
            raise RuntimeError(
                f"{', '.join(others)}{',' * (len(others) > 1)} and {last} arguments are mutually exclusive, "
                f"got {' and '.join(given)}"
            )
    if operator.given("axes") and operator.given("axis_names"):
        raise RuntimeError('"axes" and "axis_names" are mutually exclusive')


def check_box_inputs(operator: Operator, workspace: Workspace) -> None:
    """Raises RuntimeError unless the box is given just once: by inputs or by arguments."""
    named = any(operator.given(name) for name in _STARTS + _ENDS)
    if len(workspace.inputs) == 2 and not named:
        raise RuntimeError(
            "Expected named slice arguments (e.g. start/end, start/shape) or positional inputs (start, shape). Got 2 inputs: "
            "the anchor alone."
        )
    if len(workspace.inputs) > 1 and named:
        raise RuntimeError(
            "The box is given twice: Named arguments start/end/shape are not compatible with positional anchor and shape "
            "inputs"
        )
    if len(workspace.inputs) == 1 and not named:
        raise RuntimeError(
            "Expected named slice arguments (e.g. start/end, start/shape) or positional inputs (start, shape). "
            f"Got {len(workspace.inputs)} inputs."
        )
    if len(workspace.inputs) == 3 and len(workspace.inputs[0]):
        _check_types(workspace.inputs[1].dtype, workspace.inputs[2].dtype)


def _check_types(anchor: DALIDataType, shape: DALIDataType) -> None:
    if anchor != shape:
        raise RuntimeError(
            f"Anchor and shape should have the same type. Got: {dtype_name(anchor)} and {dtype_name(shape)}"
        )
    if anchor not in (INT32, INT64, FLOAT, FLOAT64):
        raise RuntimeError(f"Unsupported type of anchor and shape arguments: {dtype_name(anchor)}")


def box_region(sample: Sample, shape: Sequence[int], layout: str) -> Region:
    """The box that the inputs or arguments of a sample ask for, in data of ``shape``; it may reach outside.

    Raises:
        RuntimeError: the box is of another rank, or ends before it starts.
    """
    anchor, extents = [0] * len(shape), list(shape)
    axes = _axes(sample, layout, len(shape))
    _check_counts(sample, len(axes))
    starts, ends = _bounds(sample, [shape[axis] for axis in axes])
    for axis, start, end in zip(axes, starts, ends):
        anchor[axis], extents[axis] = start, end - start
    return Region(tuple(anchor), tuple(extents))


def _axes(sample: Sample, layout: str, ndim: int) -> list[int]:
    """The dimensions that the box speaks of; all in order where none is named."""
    layout = layout or _DEFAULT_LAYOUTS.get(ndim, "")
    if sample.given("axes"):
        axes = resolve_axes(sample["axes"], None, layout, ndim)
    elif layout or sample.given("axis_names"):
        axes = resolve_axes(None, sample["axis_names"], layout, ndim)
    else:
        axes = resolve_axes(sample["axes"], None, layout, ndim)
    return axes or list(range(ndim))


def _check_counts(sample: Sample, wanted: int) -> None:
    """Raises RuntimeError unless all parts of the box speak of ``wanted`` dimensions."""
    if len(sample.shapes) > 1:
        anchor, shape = math.prod(sample.shapes[1]), math.prod(sample.shapes[2])
        if anchor != shape:
            raise RuntimeError(
                f"Slice anchor and shape should have the same number of arguments. Got: {anchor} and {shape}"
            )
        if anchor != wanted:
            raise RuntimeError(f"Expected {wanted} elements for slice arguments (start/shape). Got {anchor}")
        return
    for name in filter(sample.given, _STARTS + _ENDS):
        data, count = sample.tensor_argument(name), len(sample[name])
        # From the graph, one value for all dimensions is a scalar. Nothing means the default.
        if data is None:
            shared = count <= 1
        else:
            shared = not data.ndim or not data.size
        if count != wanted and not shared:
            raise RuntimeError(
                f'Argument "{name}" expected shape {wanted} but got {count} values, '
                "which can't be interpreted as the expected shape."
            )


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
            raise RuntimeError(f"end coordinates can't be before start coordinates. Got: start={start:g} end={end:g}")
    return _rounded(starts), _rounded(ends)


def _has(sample: Sample, name: str) -> bool:
    """Whether the argument has values; from the graph it may come without any."""
    return sample.given(name) and len(sample[name]) > 0


def _starts(sample: Sample, sizes: Sequence[int]) -> list[float]:
    if _has(sample, "rel_start"):
        return [value * size for value, size in zip(_values(sample, "rel_start", sizes), sizes)]
    return _values(sample, "start", sizes) if _has(sample, "start") else [0.0] * len(sizes)


def _ends(sample: Sample, sizes: Sequence[int], starts: Sequence[float]) -> list[float]:
    if _has(sample, "end"):
        return _values(sample, "end", sizes)
    if _has(sample, "rel_end"):
        return [value * size for value, size in zip(_values(sample, "rel_end", sizes), sizes)]
    if _has(sample, "shape"):
        return [start + value for start, value in zip(starts, _values(sample, "shape", sizes))]
    if _has(sample, "rel_shape"):
        parts = _values(sample, "rel_shape", sizes)
        return [start + value * size for start, value, size in zip(starts, parts, sizes)]
    return [float(size) for size in sizes]


def _values(sample: Sample, name: str, sizes: Sequence[int]) -> list[float]:
    """The values of an argument; a single one stands for all dimensions."""
    values = [float(value) for value in sample[name]]
    return values * len(sizes) if len(values) == 1 else values


def _host(data: object) -> np.ndarray:
    return data if isinstance(data, np.ndarray) else data.get()  # type: ignore[attr-defined]


def _rounded(values: Sequence[float]) -> list[int]:
    return [round_half_away(float(np.float32(value))) for value in values]
