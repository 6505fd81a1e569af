"""`warp_affine`: images under an affine map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.geometry import inverted
from penstock.operators.geometry._warping import WarpingOperator, WarpPlan
from penstock.schema import Argument, Deprecation, Input, Sample, Schema, register_operator
from penstock.types import INTERP_LINEAR


@register_operator
class WarpAffine(WarpingOperator):
    """Moves pixels by an affine matrix, which maps output to input coordinates unless ``inverse_map=False``."""

    schema = Schema(
        name="WarpAffine",
        inputs=(
            Input(
                "data",
                ("HWC", "FHWC", "DHWC", "FDHWC"),
                doc="Images or volumes.",
            ),
            Input("mtx", device="match_or_cpu", doc="The matrix, where it is no argument."),
        ),
        min_inputs=1,
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "fill_value",
                "float",
                None,
                "What lies outside of the input; without it, the nearest pixel of the border.",
            ),
            Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking."),
            Argument(
                "inverse_map", "bool", True, "The matrix maps output to input coordinates; False: input to output."
            ),
            Argument(
                "matrix",
                "float[]",
                [],
                "2x3 (3x4 for volumes) matrix in x, y(, z) order, row by row.",
                tensor=True,
                per_frame=True,
            ),
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
        rank = len(extents)
        matrix = self._matrix(sample, rank)
        if not self.args["inverse_map"]:
            matrix = inverted(matrix)
        return WarpPlan(matrix, self.wanted_extents(sample, rank) or tuple(extents))

    def _matrix(self, sample: Sample, rank: int) -> np.ndarray:
        if len(sample.shapes) > 1:
            data = sample.inputs[1]
            values = data if isinstance(data, np.ndarray) else data.get()
        elif sample.given("matrix"):
            values = np.asarray(sample["matrix"], np.float64)
        else:
            raise RuntimeError("`warp_affine` needs a matrix: as an argument, or as the second input")
        if values.size != rank * (rank + 1):
            raise RuntimeError(
                f"The matrix has {values.size} elements, expected {rank * (rank + 1)} ({rank}x{rank + 1}) for {rank}-dimensional images"
            )
        return values.astype(np.float64).reshape(rank, rank + 1)
