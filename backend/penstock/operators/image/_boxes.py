"""The boxes that `slice` cuts out, from its inputs anchor and shape or from its arguments for starts and ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.data_types import FLOAT, FLOAT64, INT32, INT64, DALIDataType, dtype_name
from penstock.kernels.axes import resolve_axes
from penstock.operators.image._windows import Regions
from penstock.schema import Operator, Samples, Workspace

# The layout assumed for data without a layout, by their number of dimensions.
_DEFAULT_LAYOUTS = {2: "HW", 3: "HWC", 4: "DHWC"}
_STARTS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


def check_box_arguments(operator: Operator) -> None:
    """Raise RuntimeError if arguments that exclude each other are set."""
    for names in (_STARTS, _ENDS):
        present = [name for name in names if operator.given(name)]
        if len(present) > 1:
            *others, last = (f'"{name}"' for name in names)
            raise RuntimeError(
                f"{', '.join(others)}{',' * (len(others) > 1)} and {last} arguments are mutually exclusive, "
                f"got {' and '.join(present)}"
            )
    if operator.given("axes") and operator.given("axis_names"):
        raise RuntimeError('"axes" and "axis_names" are mutually exclusive')


def check_box_inputs(operator: Operator, workspace: Workspace) -> None:
    """Raise RuntimeError unless the box is specified exactly once: by inputs or by arguments."""
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


class BoxArguments(Protocol):
    """Gives access to the arguments that describe boxes; the methods are documented in :class:`Samples`."""

    def given(self, name: str) -> bool: ...

    def constant(self, name: str) -> Any: ...

    def values(self, name: str) -> np.ndarray: ...

    def tensors(self, name: str) -> np.ndarray | None: ...


@dataclass(frozen=True)
class _Edges:
    """The starts or the ends of boxes.

    Attributes:
        values: one row for each sample, or one row for all; a single column applies to all dimensions.
        relative: whether the values are fractions of the data's extents.
        from_start: whether the values are ends that are relative to the starts.
    """

    values: np.ndarray
    relative: bool
    from_start: bool = False


_AT_BEGIN, _AT_END = _Edges(np.zeros((1, 1)), False), _Edges(np.ones((1, 1)), True)


def box_regions(samples: Samples, shapes: np.ndarray, layout: str) -> Regions:
    """Return the boxes that the inputs or arguments select in data of ``shapes``; boxes may reach outside the data.

    Raises:
        RuntimeError: a box has the wrong rank, or ends before it starts.
        OverflowError: a start or an end is infinite or NaN.
        ValueError: the axes differ between samples.
    """
    ndim = shapes.shape[1]
    axes = samples.derived(("axes",), ("axes", layout, ndim), lambda: _axes(samples, layout, ndim))
    if len(samples.workspace.inputs) > 1:
        # Like DALI: boxes from inputs are computed in double precision, boxes from arguments in single precision.
        return _between(*_edges_of_inputs(samples, len(axes)), axes, shapes, in_single=False)
    edges = samples.derived(_STARTS + _ENDS, ("edges", len(axes)), lambda: _edges_of_arguments(samples, len(axes)))
    return _between(*edges, axes, shapes)


def argument_boxes(arguments: BoxArguments, shapes: np.ndarray, layout: str) -> Regions:
    """Return the boxes that the arguments select, computed as by :func:`box_regions`."""
    axes = _axes(arguments, layout, shapes.shape[1])
    return _between(*_edges_of_arguments(arguments, len(axes)), axes, shapes)


def _between(starts: _Edges, ends: _Edges, axes: np.ndarray, shapes: np.ndarray, in_single: bool = True) -> Regions:
    from penstock.kernels.cpu.windows import fill_boxes

    shapes = np.ascontiguousarray(shapes)
    anchors, extents = np.zeros_like(shapes), shapes.copy()
    wrong = fill_boxes(
        shapes,
        axes,
        starts.values,
        starts.relative,
        ends.values,
        ends.relative,
        ends.from_start,
        in_single,
        anchors,
        extents,
    )
    if wrong is None:
        return Regions(anchors, extents)
    start, end = wrong
    if end < start:
        raise RuntimeError(f"end coordinates can't be before start coordinates. Got: start={start:g} end={end:g}")
    raise OverflowError(f"The start and the end of a box must be finite. Got: {start:g} and {end:g}")


def _axes(arguments: BoxArguments, layout: str, ndim: int) -> np.ndarray:
    """Return the dimensions that the boxes apply to: all, in order, if the arguments list none."""
    layout = layout or _DEFAULT_LAYOUTS.get(ndim, "")
    if not arguments.given("axes") and (layout or arguments.given("axis_names")):
        axes = resolve_axes(None, arguments.constant("axis_names"), layout, ndim)
    else:
        rows = arguments.values("axes").astype(np.int64)
        if (rows != rows[0]).any():
            raise ValueError("`axes` or `axis_names` differ between the samples of the batch")
        axes = resolve_axes(rows[0].tolist(), None, layout, ndim)
    return np.array(axes or range(ndim), np.int64)


def _edges_of_inputs(samples: Samples, wanted: int) -> tuple[_Edges, _Edges]:
    inputs = samples.workspace.inputs[1:]
    counts = [set(map(math.prod, set(samples.of(batch.shapes)))) for batch in inputs]
    if counts[0] != counts[1]:
        raise RuntimeError(
            f"Slice anchor and shape should have the same number of arguments. Got: {min(counts[0])} and {min(counts[1])}"
        )
    if counts[0] != {wanted}:
        raise RuntimeError(f"Expected {wanted} elements for slice arguments (start/shape). Got {min(counts[0])}")
    anchor, shape = (
        (
            _rows_of(samples.of(batch.samples), wanted),
            bool(samples.constant(name)) and batch.dtype not in (INT32, INT64),
        )
        for batch, name in zip(inputs, ("normalized_anchor", "normalized_shape"))
    )
    return _Edges(*anchor), _Edges(*shape, from_start=True)


def _rows_of(arrays: Sequence[np.ndarray], count: int) -> np.ndarray:
    """Return a float64 array whose rows are these arrays, which have ``count`` elements each."""
    alike = len({array.shape for array in arrays}) == 1
    return np.array(arrays if alike else [array.reshape(-1) for array in arrays], np.float64).reshape(-1, count)


def _edges_of_arguments(arguments: BoxArguments, wanted: int) -> tuple[_Edges, _Edges]:
    starts, ends = _AT_BEGIN, _AT_END
    for name in filter(arguments.given, _STARTS + _ENDS):
        values = _values(arguments, name, wanted)
        if values is None:
            continue
        edges = _Edges(values, name.startswith("rel_"), name.endswith("shape"))
        if name in _STARTS:
            starts = edges
        else:
            ends = edges
    return starts, ends


def _values(arguments: BoxArguments, name: str, wanted: int) -> np.ndarray | None:
    """Return an argument's values in rows; a single column applies to all dimensions. None if a tensor argument is empty."""
    values = arguments.values(name)
    count = values.shape[1]
    data = arguments.tensors(name)
    # In a tensor argument, only a scalar applies to all dimensions; an empty tensor means the default.
    shared = count <= 1 if data is None else data.ndim == 1 or not count
    if count != wanted and not shared:
        raise RuntimeError(
            f'Argument "{name}" expected shape {wanted} but got {count} values, '
            "which can't be interpreted as the expected shape."
        )
    return values if count else None
