"""Base classes of operators that make affine matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.kernels.geometry import composed
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Workspace
from penstock.schema.example_data import random_arrays

# A layout of two unnamed dimensions.
LAYOUT = "**"
_MAX_DIMENSIONS = 6

INPUT = Input(
    "input",
    doc="An affine matrix [M|t] of float, of shape (n, n + 1), to combine the transform with.",
    example=random_arrays((2, 3)),
)
CENTER = Argument(
    "center",
    "float[]",
    None,
    "The fixed point; default: the origin.",
    tensor=True,
    per_frame=True,
    example=[3.0, 4.0],
)
REVERSE_ORDER = Argument("reverse_order", "bool", False, "Apply the operator's transform first, then the input's.")


def check_matrices(workspace: Workspace) -> None:
    """Raise RuntimeError unless the inputs are affine matrices of float."""
    for batch in workspace.inputs:
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Unexpected input data type. Expected float, got: {dtype_name(batch.dtype)}")
        for shape in batch.shapes:
            if len(shape) != 2 or shape[1] != shape[0] + 1:
                raise RuntimeError(
                    "The input, if provided, is expected to be a 2D tensor with dimensions (ndim, ndim+1) representing an "
                    f"affine transform. Got: {list(shape)}"
                )


class MatrixOperator(Operator[None, np.ndarray]):
    """Base class of operators that return affine matrices, or sequences of matrices if an argument has a value per frame."""

    def _has_frames(self, workspace: Workspace) -> bool:
        batches = (*workspace.inputs, *workspace.arguments.values())
        return any(batch.layout().startswith("F") for batch in batches)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        check_matrices(workspace)
        return [OutputSpec(FLOAT, LAYOUT, 2)]


class TransformOperator(MatrixOperator):
    """Base class of operators that make an affine matrix from their arguments, and combine it with the input, if there is one."""

    def matrix(self, sample: Sample[None, np.ndarray]) -> np.ndarray:
        """Return the operator's matrix [M|t], float32."""
        raise NotImplementedError

    def infer(self, sample: Sample[None, np.ndarray]) -> tuple[int, ...]:
        matrix = self.matrix(sample)
        count = len(matrix)
        if not 1 <= count <= _MAX_DIMENSIONS:
            raise RuntimeError(f"Transforms have 1 to {_MAX_DIMENSIONS} dimensions, got {count}")
        if sample.shapes and sample.shapes[0][0] != count:
            raise RuntimeError(
                f"The input describes a {sample.shapes[0][0]}D transform but other arguments suggest a {count}D transform"
            )
        sample.plan = matrix
        return matrix.shape

    def compute(self, sample: Sample[None, np.ndarray]) -> None:
        result = sample.plan
        if sample.inputs:
            order = (result, sample.inputs[0]) if self.args["reverse_order"] else (sample.inputs[0], result)
            result = composed(*order)
        sample.outputs[0][...] = result


def vector(
    sample: Sample[None, np.ndarray], name: str, count: int | None = None, all_given: bool = False
) -> np.ndarray | None:
    """Return an argument's values, float32; a single value is repeated ``count`` times. Return None if the argument is absent.

    Raises:
        RuntimeError: there are neither one nor ``count`` values; or, with ``all_given``, a tensor argument is a vector of
            one value.
    """
    if not sample.given(name):
        return None
    values = sample.tensor_argument(name)
    if values is not None and values.ndim > 1:
        raise RuntimeError(f"`{name}` must be a list of numbers, got a tensor of shape {list(values.shape)}")
    if all_given and values is not None and values.shape not in ((), (count,)):
        raise RuntimeError(f'Argument "{name}" expected shape {count} but got {len(values)} values')
    return repeated(sample[name], name, count)


def repeated(values: Sequence[float], name: str, count: int | None) -> np.ndarray:
    """Return values as float32; a single value is repeated ``count`` times."""
    array = np.asarray(values, np.float32)
    if count is None or len(array) == count:
        return array
    if len(array) != 1:
        raise RuntimeError(f'Argument "{name}" expected shape {count} but got {len(array)} values')
    return np.repeat(array, count)
