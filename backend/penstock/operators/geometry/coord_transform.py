"""`coord_transform`: linear transforms of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT16, INT32, UINT8, UINT16, dtype_name, numpy_dtype
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    PlanColumns,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import random_arrays
from penstock.schema.operator import Shape
from penstock.schema.sharing import share
from penstock.tensors.places import places_in_type, places_to_fill

_MAX_COORDINATES = 6


@dataclass(eq=False)
class Maps(PlanColumns[np.ndarray]):
    """The transforms of many samples.

    Attributes:
        elements: [M|T] of all samples, one after the other, float32.
        sizes: the numbers of rows and columns of each sample's [M|T], int64 of shape (samples, 2).
    """

    elements: np.ndarray
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def row(self, number: int) -> np.ndarray:
        volumes = self.sizes.prod(axis=1)
        first = volumes[:number].sum()
        return self.elements[first : first + volumes[number]].reshape(self.sizes[number])


@register_operator
class CoordTransform(Operator[bool, np.ndarray, Maps]):
    """Computes ``M x + T`` for each point x; the input's innermost dimension holds the points' coordinates."""

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

    repeats_plans = True

    def setup(self) -> None:
        if self.given("MT") and (self.given("M") or self.given("T")):
            raise RuntimeError(
                "The combined ``MT`` argument cannot be used together with separate ``M``, ``T`` arguments."
            )

    def _has_frames(self, workspace: Workspace[bool, np.ndarray, Maps]) -> bool:
        batches = (*workspace.inputs, *workspace.arguments.values())
        return any(batch.layout().startswith("F") for batch in batches)

    def describe(self, workspace: Workspace[bool, np.ndarray, Maps]) -> list[OutputSpec]:
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

    def infer_batch(self, samples: Samples[bool, np.ndarray, Maps]) -> tuple[list[list[Shape]], Maps]:
        shapes = samples.shape_list()
        if len(shapes[0]) < 2:
            raise RuntimeError(f"Points must have at least 2 dimensions, got shape {list(shapes[0])}")
        if not samples.state:
            # A batch without points has no coordinates either.
            return [[(*shape[:-1], 0) for shape in shapes]], Maps(
                np.empty(0, np.float32), np.zeros((len(shapes), 2), int)
            )
        count = shapes[0][-1]
        if any(shape[-1] != count for shape in shapes):
            raise ValueError("Points with different numbers of coordinates have different transforms")
        maps = samples.derived(("M", "MT", "T"), (count, len(samples)), _maps, samples, count)
        rows = int(maps.sizes[0, 0])
        return [shapes if rows == count else [(*shape[:-1], rows) for shape in shapes]], maps

    def compute_samples(self, workspace: Workspace[bool, np.ndarray, Maps], shapes: Sequence[Shape]) -> None:
        from penstock.operators.geometry._points_cpu import transform_points

        if not workspace.state or not workspace.live_indices:
            return
        batch, maps = workspace.inputs[0], workspace.plans
        kind, result = numpy_dtype(batch.dtype), numpy_dtype(workspace.outputs[0].dtype)
        sources, _owner = places_in_type(batch, kind)
        addresses = workspace.of_live(sources), workspace.of_live(places_to_fill(workspace.outputs[0]))
        volumes, likes = workspace.of_live(batch.sample_volumes()), (kind.type(0), result.type(0))

        def transform(begin: int, end: int) -> None:
            transform_points(*addresses, volumes, maps.elements, maps.sizes, begin, end, *likes)

        share(workspace, transform, volumes)

    def compute_batch(self, workspace: Workspace[bool, np.ndarray, Maps]) -> None:
        from penstock.kernels.cuda.colour import fits, transform_colours
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live if workspace.state else []
        maps = [(np.ascontiguousarray(sample.plan[:, :-1]), sample.plan[:, -1].copy()) for sample in samples]
        if not all(fits(matrix) for matrix, _ in maps):
            super().compute_batch(workspace)
            return
        # Points are passed to a kernel for pixels, with coordinates as channels.
        points, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        transform_colours([(point, *each, target) for point, each, target in zip(points, maps, targets)])


def _maps(samples: Samples[bool, np.ndarray, Maps], count: int) -> Maps:
    """Return the transforms of points of ``count`` coordinates."""
    if samples.given("MT"):
        maps = _matrices(samples, "MT", count + 1)
        if maps.ndim == 1:
            maps = maps[:, None, None] * np.eye(count, count + 1, dtype=np.float32)
    else:
        matrices = _matrices(samples, "M", count) if samples.given("M") else np.ones(1, np.float32)
        if matrices.ndim == 1:
            matrices = matrices[:, None, None] * np.eye(count, dtype=np.float32)
        translations = _translations(samples, matrices.shape[1])
        maps = np.empty((max(len(matrices), len(translations)), matrices.shape[1], count + 1), np.float32)
        maps[:, :, :-1], maps[:, :, -1] = matrices, translations
    _check_dimensions(maps.shape[1], count)
    shape = maps.shape[1:]
    return Maps(np.broadcast_to(maps, (len(samples), *shape)).reshape(-1), np.full((len(samples), 2), shape))


def _check_dimensions(rows: int, columns: int) -> None:
    """Raise RuntimeError if a matrix of this shape has too many coordinates of input points or output points."""
    for name, count in (("input", columns), ("output", rows)):
        if count > _MAX_COORDINATES:
            raise RuntimeError(f"Unsupported {name} point dimensionality: {count}; at most {_MAX_COORDINATES}")


def _matrices(samples: Samples[bool, np.ndarray, Maps], name: str, columns: int) -> np.ndarray:
    """Return an argument's matrices, float32 of shape (samples, rows, columns), or factors, of shape (samples,), or one for all."""
    values, computed = samples.values(name).astype(np.float32), samples.tensors(name)
    if computed is not None:
        shape = list(computed.shape[1:])
        if len(shape) not in (0, 2) or (shape and shape[1] != columns):
            raise RuntimeError(f"`{name}` must be a number or a matrix of {columns} columns, got shape {shape}")
        return values.reshape(computed.shape)
    if values.size == 1:
        return values[0]
    if not values.size or values.size % columns:
        raise RuntimeError(f"`{name}` has {values.size} elements, which make no matrix of {columns} columns")
    return values.reshape(1, -1, columns)


def _translations(samples: Samples[bool, np.ndarray, Maps], count: int) -> np.ndarray:
    """Return the translations, float32 of shape (samples, 1 or ``count``), or one for all samples."""
    if not samples.given("T"):
        return np.zeros((1, 1), np.float32)
    values, computed = samples.values("T").astype(np.float32), samples.tensors("T")
    shape = [] if computed is None else list(computed.shape[1:])
    if len(shape) > 1:
        raise RuntimeError(f"`T` must be a number or a list of numbers, got a tensor of shape {shape}")
    if values.shape[1] not in (1, count) or (shape and values.shape[1] != count):
        raise RuntimeError(f"Expected {count}-D translation vectors in `T`, got {values.shape[1]}-D")
    return values
