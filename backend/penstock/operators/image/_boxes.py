"""Boxes as `slice` takes them: by the inputs anchor and shape, or by arguments for their starts and ends."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from penstock.data_types import FLOAT, FLOAT64, INT32, INT64, DALIDataType, dtype_name
from penstock.kernels.axes import resolve_axes
from penstock.operators.image._windows import Regions
from penstock.schema import Operator, Samples, Workspace

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


class BoxArguments(Protocol):
    """Where the arguments of boxes come from; :class:`Samples` says what each is."""

    def given(self, name: str) -> bool: ...

    def constant(self, name: str) -> Any: ...

    def values(self, name: str) -> np.ndarray: ...

    def tensors(self, name: str) -> np.ndarray | None: ...


def box_regions(samples: Samples, shapes: np.ndarray, layout: str) -> Regions:
    """The boxes that the inputs or arguments ask for, in data of ``shapes``; they may reach outside.

    Raises:
        RuntimeError: a box is of another rank, or ends before it starts.
    """
    if len(samples.workspace.inputs) == 1:
        return argument_boxes(samples, shapes, layout)
    axes = _axes(samples, layout, shapes.shape[1])
    return _between(*_bounds_of_inputs(samples, shapes[:, axes]), axes, shapes)


def argument_boxes(arguments: BoxArguments, shapes: np.ndarray, layout: str) -> Regions:
    """As :func:`box_regions`, where arguments tell the boxes."""
    axes = _axes(arguments, layout, shapes.shape[1])
    return _between(*_bounds_of_arguments(arguments, shapes[:, axes]), axes, shapes)


def _between(starts: np.ndarray, ends: np.ndarray, axes: list[int], shapes: np.ndarray) -> Regions:
    if not (starts <= ends).all():
        _check_order(starts, ends)
    anchors, extents = np.zeros_like(shapes), shapes.copy()
    anchors[:, axes] = _rounded(starts)
    extents[:, axes] = _rounded(ends) - anchors[:, axes]
    return Regions(anchors, extents)


def _axes(arguments: BoxArguments, layout: str, ndim: int) -> list[int]:
    """The dimensions that the boxes speak of; all in order where none is named."""
    layout = layout or _DEFAULT_LAYOUTS.get(ndim, "")
    if not arguments.given("axes") and (layout or arguments.given("axis_names")):
        axes = resolve_axes(None, arguments.constant("axis_names"), layout, ndim)
    else:
        rows = arguments.values("axes").astype(np.int64)
        if (rows != rows[0]).any():
            raise ValueError("The samples name different axes")
        axes = resolve_axes(rows[0].tolist(), None, layout, ndim)
    return axes or list(range(ndim))


def _bounds_of_inputs(samples: Samples, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wanted = sizes.shape[1]
    inputs = samples.workspace.inputs[1:]
    counts = [{math.prod(shape) for shape in samples.of(batch.shapes)} for batch in inputs]
    if counts[0] != counts[1]:
        raise RuntimeError(
            "Slice anchor and shape should have the same number of arguments. "
            f"Got: {min(counts[0])} and {min(counts[1])}"
        )
    if counts[0] != {wanted}:
        raise RuntimeError(f"Expected {wanted} elements for slice arguments (start/shape). Got {min(counts[0])}")
    parts = []
    for batch, name in zip(inputs, ("normalized_anchor", "normalized_shape")):
        values = np.array([data.reshape(-1) for data in samples.of(batch.samples)], np.float64)
        relative = samples.constant(name) and batch.dtype not in (INT32, INT64)
        parts.append(values * sizes if relative else values)
    anchor, shape = parts
    return anchor, anchor + shape


def _bounds_of_arguments(arguments: BoxArguments, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts = np.zeros(sizes.shape)
    for name in filter(arguments.given, _STARTS):
        values = _values(arguments, name, sizes.shape[1])
        if values is not None:
            starts = np.broadcast_to(values * sizes if name.startswith("rel_") else values, sizes.shape)
    ends = sizes.astype(np.float64)
    for name in filter(arguments.given, _ENDS):
        values = _values(arguments, name, sizes.shape[1])
        if values is not None:
            own = values * sizes if name.startswith("rel_") else values
            ends = np.broadcast_to(starts + own if name.endswith("shape") else own, sizes.shape)
    return starts, ends


def _values(arguments: BoxArguments, name: str, wanted: int) -> np.ndarray | None:
    """The values of an argument, a single one of which stands for all dimensions; from the graph it may come without any."""
    values = arguments.values(name)
    count = values.shape[1]
    data = arguments.tensors(name)
    # From the graph, one value for all dimensions is a scalar. Nothing means the default.
    shared = count <= 1 if data is None else data.ndim == 1 or not count
    if count != wanted and not shared:
        raise RuntimeError(
            f'Argument "{name}" expected shape {wanted} but got {count} values, '
            "which can't be interpreted as the expected shape."
        )
    return values if count else None


def _check_order(starts: np.ndarray, ends: np.ndarray) -> None:
    for start, end in zip(starts.ravel().tolist(), ends.ravel().tolist()):
        if end < start:
            raise RuntimeError(f"end coordinates can't be before start coordinates. Got: start={start:g} end={end:g}")


def _rounded(values: np.ndarray) -> np.ndarray:
    """Whole numbers, from single precision; halves go away from zero."""
    single = values.astype(np.float32).astype(np.float64)
    if not np.isfinite(single).all():
        raise OverflowError(f"A box has no place: {single[~np.isfinite(single)][0]:g}")
    return np.where(single >= 0, np.floor(single + 0.5), np.ceil(single - 0.5)).astype(np.int64)
