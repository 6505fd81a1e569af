"""`coord_transform`: linear transforms of points."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, INT16, INT32, UINT8, UINT16, dtype_name
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import random_arrays

_MAX_COORDINATES = 6


@register_operator
class CoordTransform(Operator[bool, tuple[np.ndarray, np.ndarray]]):
    """Computes ``M x + T`` for each point x; the input's innermost dimension contains the coordinates of a point."""

    schema = Schema(
        name="CoordTransform",
        inputs=(
            Input(
                "input",
                doc="Points: any number of dimensions, the last of which holds the n coordinates.",
                example=random_arrays((4, 2), (1, 2), (7, 2)),
            ),
        ),
        arguments=(
            Argument(
                "M",
                "float[]",
                None,
                "The matrix, m x n, row by row; a single value is multiplied with the identity. Default: the identity.",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=[0.9, 0.2, -0.1, 1.1],
                tensor_example=[[0.9, 0.2], [-0.1, 1.1]],
            ),
            Argument(
                "MT",
                "float[]",
                None,
                "M and T as one matrix [M|T], m x (n + 1).",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=[0.9, 0.2, 3.0, -0.1, 1.1, -1.0],
                tensor_example=[[0.9, 0.2, 3.0], [-0.1, 1.1, -1.0]],
            ),
            Argument(
                "T",
                "float[]",
                None,
                "The translation, m values or one for all. Default: none.",
                tensor=True,
                uniform=True,
                per_frame=True,
                example=[3.0, -1.0],
            ),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output: FLOAT or that of the input.", example=FLOAT),
        ),
        sequences=True,
        equivalents=(Equivalent("cv2.transform"),),
    )

    def setup(self) -> None:
        if self.given("MT") and (self.given("M") or self.given("T")):
            raise RuntimeError(
                "The combined ``MT`` argument cannot be used together with separate ``M``, ``T`` arguments."
            )
        self._maps: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def _has_frames(self, workspace: Workspace[bool, tuple[np.ndarray, np.ndarray]]) -> bool:
        batches = (*workspace.inputs, *workspace.arguments.values())
        return any(batch.layout().startswith("F") for batch in batches)

    def describe(self, workspace: Workspace[bool, tuple[np.ndarray, np.ndarray]]) -> list[OutputSpec]:
        batch, dtype = workspace.inputs[0], self.args["dtype"]
        workspace.state = any(math.prod(shape) for shape in batch.shapes)
        if not workspace.state:
            return [OutputSpec(dtype, batch.layout(), batch.ndim())]
        if batch.dtype not in (UINT8, UINT16, INT16, INT32, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(
                f"CoordTransform output type must be the same as input type, which is {dtype_name(batch.dtype)}, or `float`. "
                f"Got: {dtype_name(dtype)}"
            )
        return [OutputSpec(dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample[bool, tuple[np.ndarray, np.ndarray]]) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if len(shape) < 2:
            raise RuntimeError(f"Points must have at least 2 dimensions, got shape {list(shape)}")
        if not sample.workspace.state:
            # For a batch without points, M and T are not read, and the output gets 0 coordinates.
            return (*shape[:-1], 0)
        sample.plan = self._map(sample, shape[-1])
        return (*shape[:-1], len(sample.plan[0]))

    def _map(self, sample: Sample[bool, tuple[np.ndarray, np.ndarray]], count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return M and T for points of ``count`` coordinates; they are cached if they are constant."""
        if count in self._maps:
            return self._maps[count]
        matrix, translation = map(np.ascontiguousarray, self._map_of(sample, count))
        _check_dimensions(*matrix.shape)
        if not self.tensor_arguments:
            self._maps[count] = matrix, translation
        return matrix, translation

    def _map_of(self, sample: Sample[bool, tuple[np.ndarray, np.ndarray]], count: int) -> tuple[np.ndarray, np.ndarray]:
        if sample.given("MT"):
            both = _matrix(sample, "MT", count + 1)
            if both.ndim:
                return both[:, :-1], both[:, -1]
            return both * np.eye(count, dtype=np.float32), np.zeros(count, np.float32)
        matrix = _matrix(sample, "M", count) if sample.given("M") else np.ones((), np.float32)
        if not matrix.ndim:
            matrix = matrix * np.eye(count, dtype=np.float32)
        return matrix, _translation(sample, len(matrix))

    def compute(self, sample: Sample[bool, tuple[np.ndarray, np.ndarray]]) -> None:
        from penstock.operators.geometry._points_cpu import transform_points

        if not sample.workspace.state:
            return
        matrix, translation = sample.plan
        transform_points(np.ascontiguousarray(sample.inputs[0]), matrix, translation, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[bool, tuple[np.ndarray, np.ndarray]]) -> None:
        from penstock.kernels.cuda.colour import fits, transform_colours
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live if workspace.state else []
        if not all(fits(sample.plan[0]) for sample in samples):
            super().compute_batch(workspace)
            return
        # Points are passed to a kernel for pixels, with coordinates as channels.
        points, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        transform_colours([(point, *sample.plan, target) for point, sample, target in zip(points, samples, targets)])


def _check_dimensions(rows: int, columns: int) -> None:
    """Raise RuntimeError if a matrix of this shape has too many coordinates of input points or output points."""
    for name, count in (("input", columns), ("output", rows)):
        if count > _MAX_COORDINATES:
            raise RuntimeError(f"Unsupported {name} point dimensionality: {count}; at most {_MAX_COORDINATES}")


def _matrix(sample: Sample[bool, tuple[np.ndarray, np.ndarray]], name: str, columns: int) -> np.ndarray:
    """Return an argument's matrix, float32 with ``columns`` columns, or its scalar, float32."""
    argument = sample.tensor_argument(name)
    if argument is not None:
        # Reading the argument checks its type.
        sample[name]
        if argument.ndim not in (0, 2) or (argument.ndim == 2 and argument.shape[1] != columns):
            raise RuntimeError(
                f"`{name}` must be a number or a matrix of {columns} columns, got shape {list(argument.shape)}"
            )
        return argument.astype(np.float32)
    values = np.asarray(sample[name], np.float32)
    if values.size == 1:
        return values.reshape(())
    if not values.size or values.size % columns:
        raise RuntimeError(f"`{name}` must be a number or a matrix of {columns} columns, got {values.size} elements")
    return values.reshape(-1, columns)


def _translation(sample: Sample[bool, tuple[np.ndarray, np.ndarray]], count: int) -> np.ndarray:
    if not sample.given("T"):
        return np.zeros(count, np.float32)
    argument = sample.tensor_argument("T")
    if argument is not None and argument.ndim > 1:
        raise RuntimeError(f"`T` must be a number or a list of numbers, got a tensor of shape {list(argument.shape)}")
    values = np.asarray(sample["T"], np.float32)
    if len(values) not in (1, count) or (argument is not None and argument.ndim and len(values) != count):
        raise RuntimeError(f"Expected {count}-D translation vectors in `T`, got {len(values)}-D")
    return np.broadcast_to(values, (count,))
