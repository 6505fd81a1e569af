"""Base classes of operators that fill tensors with a value, and the broadcasting of this value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from penstock.data_types import ENUM_TYPES, DALIDataType, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Workspace
from penstock.schema.operator import Shape
from penstock.schema.plans import Plan, Plans, State

SHAPE = Argument(
    "shape",
    "int32[]",
    None,
    "Extents of the output; by default it is a scalar.",
    tensor=True,
    uniform=True,
    example=[2, 3],
)
LAYOUT = Argument("layout", "layout", None, "Layout of the output.", example="HW")


def check_filled_type(dtype: DALIDataType) -> None:
    """Raise RuntimeError unless the type is a number type or BOOL."""
    if dtype in ENUM_TYPES:
        raise RuntimeError(
            f"Data type {dtype_name(dtype)} is currently not supported. Supported types are those of numbers and bool"
        )


class ShapedFilling(Operator[State, Plan, Plans]):
    """Base class of operators whose output shape and layout come from arguments."""

    def shaped(self, workspace: Workspace, dtype: DALIDataType) -> OutputSpec:
        """Return the output's description: type ``dtype``, the layout, and the rank that follows from the argument `shape`."""
        layout = self.args["layout"] or ""
        ndim = len(self.args["shape"] or ())
        computed = workspace.arguments.get("shape")
        if computed is not None and computed.shapes:
            ndim = int(np.prod(computed.shapes[0], dtype=np.int64))
        if layout and len(layout) != ndim:
            raise RuntimeError(f"Layout '{layout}' has {len(layout)} dimensions but output shape has {ndim}")
        return OutputSpec(dtype, layout, ndim)

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = tuple(sample["shape"] or ())
        if min(shape, default=0) < 0:
            raise RuntimeError(f"Extents cannot be negative: {list(shape)}")
        return shape


# Batches of at most this many elements are filled by one thread.
_MAX_ELEMENTS_FOR_ONE_THREAD = 1 << 22

DATA_LIKE = Input("data_like", device="any", doc="Data whose shapes to use; its contents do not matter.")
DTYPE_LIKE = Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input.")


class FillingLike(Operator):
    """Base class of operators whose output has the input's shape, filled with the class attribute ``value``."""

    value: ClassVar[int]

    plans_by_shape = True

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch, dtype = workspace.inputs[0], self.args["dtype"]
        if dtype is not None:
            check_filled_type(dtype)
        return [OutputSpec(batch.dtype if dtype is None else dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        sample.outputs[0].fill(self.value)

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        if sum(map(math.prod, shapes)) > _MAX_ELEMENTS_FOR_ONE_THREAD:
            super().compute_samples(workspace, shapes)
        else:
            workspace.outputs[0].contiguous_elements().fill(self.value)


def spread_shape(value: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that results from broadcasting the two shapes; raise RuntimeError if they don't broadcast."""
    try:
        return np.broadcast_shapes(value, shape)
    except ValueError:
        raise RuntimeError(f"Shapes {list(shape)} and {list(value)} can't be broadcast") from None


def spread(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return ``value`` broadcast to ``shape``. If the broadcast value has more elements, return the first ones in this shape.

    Raises:
        RuntimeError: the shapes do not broadcast.
    """
    common = spread_shape(value.shape, shape)
    spread_out = np.broadcast_to(value, common)
    if common == shape:
        return spread_out
    return spread_out.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)
