"""`coord_flip`: mirrors points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, random_arrays
from penstock.schema.operator import Shape


@register_operator
class CoordFlip(Operator[None, tuple[np.ndarray, np.ndarray]]):
    """Mirrors points: each flipped coordinate c becomes ``2 * center - c``."""

    schema = Schema(
        name="CoordFlip",
        inputs=(
            Input(
                "input",
                doc="Points of float, of shape (points, coordinates), up to three coordinates.",
                example=random_arrays((4, 2), (1, 2), (7, 2), low=0),
            ),
        ),
        arguments=(
            Argument("center_x", "float", 0.5, "The x coordinate to mirror about.", tensor=True),
            Argument("center_y", "float", 0.5, "The y coordinate to mirror about.", tensor=True),
            Argument("center_z", "float", 0.5, "The z coordinate to mirror about.", tensor=True),
            Argument("flip_x", "int32", 1, "Nonzero: mirror x.", tensor=True),
            Argument("flip_y", "int32", 0, "Nonzero: mirror y.", tensor=True),
            Argument("flip_z", "int32", 0, "Nonzero: mirror z.", tensor=True),
            Argument("layout", "layout", "", "Order of the coordinates; by default x, xy or xyz.", example="yx"),
        ),
        examples=(Example(), Example({"flip_z": 1, "center_z": 0.25}, (random_arrays((4, 3), (1, 3), (7, 3), low=0),))),
    )

    plans_by_shape = True

    def describe(self, workspace: Workspace[None, tuple[np.ndarray, np.ndarray]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Input is expected to be float, got {dtype_name(batch.dtype)}")
        widths = {shape[1] for shape in batch.shape() if len(shape) == 2}
        if len(widths) > 1:
            raise RuntimeError(
                "All samples are expected to have coordinates with same number of dimensions. Got points of "
                f"{', '.join(map(str, sorted(widths)))} coordinates"
            )
        return [OutputSpec(FLOAT, "", 2)]

    def infer(self, sample: Sample[None, tuple[np.ndarray, np.ndarray]]) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if len(shape) != 2 or shape[1] > 3:
            raise RuntimeError(f"Points must be of shape (points, up to 3 coordinates), got {list(shape)}")
        layout = self.args["layout"] or "xyz"[: shape[1]]
        sign, offset = np.ones(shape[1], np.float32), np.zeros(shape[1], np.float32)
        for name in "xyz"[: shape[1]]:
            column = layout.find(name)
            if column < 0:
                raise RuntimeError(f'Dimension "{name}" not found in the layout "{layout}"')
            # Read the argument even if it is not needed, so that a wrong value is reported.
            center = sample[f"center_{name}"]
            if sample[f"flip_{name}"] and column < shape[1]:
                sign[column], offset[column] = -1, 2 * center
        sample.plan = sign, offset
        return shape

    def compute_samples(
        self, workspace: Workspace[None, tuple[np.ndarray, np.ndarray]], shapes: Sequence[Shape]
    ) -> None:
        first = workspace.samples[0] if workspace.batch_size else None
        if first is None or workspace.failures or workspace.arguments:
            super().compute_samples(workspace, shapes)
            return
        # All points have the same number of coordinates, and arguments are constant, so the first plan applies to all points.
        (sign, offset), points = first.plan, np.concatenate(workspace.inputs[0].samples)
        np.add(points * sign, offset, out=workspace.outputs[0].contiguous_elements().reshape(points.shape))

    def compute(self, sample: Sample[None, tuple[np.ndarray, np.ndarray]]) -> None:
        sign, offset = sample.plan
        np.add(sample.inputs[0] * sign, offset, out=sample.outputs[0])

    def compute_batch(self, workspace: Workspace[None, tuple[np.ndarray, np.ndarray]]) -> None:
        from penstock.kernels.cuda.elementwise import evaluate_batch
        from penstock.kernels.cuda.launch import locate_all, upload

        samples = workspace.live
        signs, offsets = (upload([sample.plan[part] for sample in samples]) for part in (0, 1))
        points, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        evaluate_batch("return a * b + c;", [(job[:3], job[3]) for job in zip(points, signs, offsets, targets)])
