"""`rotate`: images turned about their middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INTERP_LINEAR
from penstock.kernels.geometry import about_centres, enclosing_extents, rotated_canvas, rotation_2d, rotation_3d
from penstock.operators.geometry._warping import WarpingOperator, WarpPlan
from penstock.schema import Argument, Deprecation, Input, Sample, Schema, Workspace, register_operator
from penstock.schema.operator import Shape
from penstock.schema.samples import Example


@register_operator
class Rotate(WarpingOperator):
    """Turns images counter-clockwise about their middle; the canvas grows to hold them, unless told otherwise."""

    schema = Schema(
        name="Rotate",
        inputs=(
            Input(
                "input",
                ("HWC", "FHWC", "DHWC", "FDHWC"),
                doc="Images or volumes.",
            ),
        ),
        arguments=(
            Argument(
                "angle",
                "float",
                doc="In degrees, counter-clockwise.",
                required=True,
                tensor=True,
                per_frame=True,
                example=30.0,
            ),
            Argument(
                "axis",
                "float[]",
                None,
                "For volumes: the direction (x, y, z) of the axis of rotation.",
                tensor=True,
                matrix=True,
                per_frame=True,
            ),
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "fill_value",
                "float",
                None,
                "What lies outside of the input; without it, the nearest pixel of the border.",
                example=7.0,
            ),
            Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking."),
            Argument("keep_size", "bool", False, "The output is as large as the input."),
            Argument(
                "output_dtype",
                "DALIDataType",
                None,
                "Old name of `dtype`.",
                deprecated=Deprecation("0.24", renamed_to="dtype"),
            ),
            Argument(
                "size",
                "float[]",
                [],
                "Output extents (height, width) or (depth, height, width).",
                tensor=True,
                example=[20.0, 30.0],
            ),
        ),
        sequences=True,
        volumetric=True,
        examples=(
            Example(),
            Example({"axis": [0.0, 0.6, 0.8]}, layout="DHWC"),
            Example({"axis": [0.0, 0.6, 0.8]}, layout="FDHWC"),
        ),
    )

    def plan(self, sample: Sample, extents: Sequence[int]) -> WarpPlan:
        size_in = tuple(reversed(extents))
        rotation = self._rotation(sample)
        size_out = tuple(reversed(self.wanted_extents(sample, len(extents)) or ()))
        if not size_out:
            size_out = size_in if self.args["keep_size"] else rotated_canvas(size_in, rotation)
        return WarpPlan(about_centres(rotation, size_in, size_out), tuple(reversed(size_out)))

    def align_frames(
        self, workspace: Workspace, shapes: list[list[Shape]], lengths: Sequence[int]
    ) -> list[list[Shape]]:
        """One canvas for all frames of a sequence, where its size follows from their angles."""
        if self.args["keep_size"] or self.given("size"):
            return shapes
        start = 0
        for length in lengths:
            frames = [sample for sample in workspace.samples[start : start + length] if sample is not None]
            start += length
            frames = [sample for sample in frames if sample.index not in workspace.failures]
            if len(frames) > 1 and len({sample.plan.extents for sample in frames}) > 1:
                self._share_canvas(frames)
        extents = [None if s is None or s.plan is None else s.plan.extents for s in workspace.samples]
        return [
            [shape if e is None else (*e, shape[-1]) for e, shape in zip(extents, output_shapes)]
            for output_shapes in shapes
        ]

    def _share_canvas(self, frames: Sequence[Sample]) -> None:
        """Gives the frames the largest extents that any of them needs, of the parity that most of them have."""
        size_in = tuple(reversed(frames[0].shapes[0][:-1]))
        needed = np.max([enclosing_extents(size_in, self._rotation(sample)) for sample in frames], axis=0)
        odd = np.sum([[extent % 2 for extent in reversed(sample.plan.extents)] for sample in frames], axis=0)
        size_out = tuple(int(n + (n % 2 != (2 * o > len(frames)))) for n, o in zip(needed, odd))
        for sample in frames:
            matrix = about_centres(self._rotation(sample), size_in, size_out)
            sample.plan = WarpPlan(matrix, tuple(reversed(size_out)))

    def _rotation(self, sample: Sample) -> np.ndarray:
        if len(sample.shapes[0]) == 3:
            return rotation_2d(sample["angle"])
        return rotation_3d(sample["angle"], self._axis(sample))

    @staticmethod
    def _axis(sample: Sample) -> list[float]:
        if not sample.given("axis"):
            raise RuntimeError("Argument `axis` is required to rotate volumes")
        axis = sample["axis"]
        if len(axis) != 3 or not np.any(axis):
            raise RuntimeError(f"`axis` must be a direction of three numbers that are not all 0, got {axis}")
        return axis
