"""`warp_affine`: images under an affine map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.data_types import FLOAT, INTERP_LINEAR, dtype_name
from penstock.kernels.geometry import inverted
from penstock.operators.geometry._warping import WarpingOperator, WarpPlan
from penstock.schema import Argument, Deprecation, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.samples import Example, fixed_arrays, pictures

_OF_VOLUMES = [0.9, 0.1, 0.0, 2.0, -0.1, 0.8, 0.1, 1.0, 0.0, 0.01, 1.1, -0.1]


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
                example=7.0,
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
                matrix=True,
                per_frame=True,
                example=[0.9, 0.2, 3.0, -0.1, 1.1, 2.0],
                tensor_example=[[0.9, 0.2, 3.0], [-0.1, 1.1, 2.0]],
            ),
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
            Example({"matrix": [0.9, 0.2, 3.0, -0.1, 1.1, 2.0]}),
            Example(inputs=(pictures, fixed_arrays([[0.9, 0.2, 3], [-0.1, 1.1, 2]]))),
            Example({"matrix": _OF_VOLUMES}, layout="DHWC"),
            Example({"matrix": _OF_VOLUMES}, layout="FDHWC"),
        ),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        if len(workspace.inputs) > 1 and workspace.inputs[1].dtype != FLOAT:
            raise RuntimeError(f"Matrices must be of float, got {dtype_name(workspace.inputs[1].dtype)}")
        return super().describe(workspace)

    def plan(self, sample: Sample, extents: Sequence[int]) -> WarpPlan:
        rank = len(extents)
        matrix = self._matrix(sample, rank)
        if matrix is not None and not self.args["inverse_map"]:
            matrix = inverted(matrix)
        return WarpPlan(matrix, self.wanted_extents(sample, rank) or tuple(extents))

    def _matrix(self, sample: Sample, rank: int) -> np.ndarray | None:
        """The matrix that was given; None where it is on the GPU."""
        if len(sample.shapes) > 1:
            if sample.shapes[1] != (rank, rank + 1):
                raise RuntimeError(
                    f"The matrices must be of shape ({rank}, {rank + 1}), got a tensor of shape {list(sample.shapes[1])}"
                )
            if sample.workspace.inputs[1].device_type == "gpu":
                return None
            values = sample.inputs[1]
        elif sample.given("matrix"):
            computed = sample.tensor_argument("matrix")
            if computed is not None and computed.shape != (rank, rank + 1):
                raise RuntimeError(
                    f"Affine mapping parameters must be a list of {rank} x {rank + 1} tensors, got shape {list(computed.shape)}"
                )
            values = np.asarray(sample["matrix"], np.float64)
            if values.size != rank * (rank + 1):
                raise RuntimeError(
                    f"The matrix has {values.size} elements, expected {rank * (rank + 1)} ({rank}x{rank + 1}) for "
                    f"{rank}-dimensional images"
                )
        else:
            raise RuntimeError("`warp_affine` needs a matrix: as an argument, or as the second input")
        return values.astype(np.float64).reshape(rank, rank + 1)

    def matrices(self, workspace: Workspace) -> Sequence[Any]:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.warp import prepared_matrices

        samples = workspace.live
        if len(workspace.inputs) < 2 or workspace.inputs[1].device_type != "gpu":
            return super().matrices(workspace)
        rank = len(samples[0].plan.extents)
        return prepared_matrices(locate_all(workspace.inputs[1], samples), rank, not self.args["inverse_map"])
