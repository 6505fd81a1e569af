"""`rotate`: images turned about their middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.geometry import about_centres, rotated_canvas, rotation_2d, rotation_3d
from penstock.operators.geometry._warping import WarpingOperator, WarpPlan
from penstock.schema import Argument, Deprecation, Input, Sample, Schema, register_operator
from penstock.types import INTERP_LINEAR


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
                "angle", "float", doc="In degrees, counter-clockwise.", required=True, tensor=True, per_frame=True
            ),
            Argument(
                "axis",
                "float[]",
                None,
                "For volumes: the direction (x, y, z) of the axis of rotation.",
                tensor=True,
                per_frame=True,
            ),
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "fill_value",
                "float",
                None,
                "What lies outside of the input; without it, the nearest pixel of the border.",
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
            Argument("size", "float[]", [], "Output extents (height, width) or (depth, height, width).", tensor=True),
        ),
        sequences=True,
        volumetric=True,
    )

    def plan(self, sample: Sample, extents: Sequence[int]) -> WarpPlan:
        size_in = tuple(reversed(extents))
        if len(extents) == 2:
            rotation = rotation_2d(sample["angle"])
        else:
            rotation = rotation_3d(sample["angle"], self._axis(sample))
        size_out = tuple(reversed(self.wanted_extents(sample, len(extents)) or ()))
        if not size_out:
            size_out = size_in if self.args["keep_size"] else rotated_canvas(size_in, rotation)
        return WarpPlan(about_centres(rotation, size_in, size_out), tuple(reversed(size_out)))

    @staticmethod
    def _axis(sample: Sample) -> list[float]:
        if not sample.given("axis"):
            raise RuntimeError("`axis` must be given to rotate volumes")
        axis = sample["axis"]
        if len(axis) != 3 or not np.any(axis):
            raise RuntimeError(f"`axis` must be a direction of three numbers that are not all 0, got {axis}")
        return axis
