"""`warp_affine`: affine warping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.kernels.geometry import inverted
from penstock.operators.geometry._warping import (
    DTYPE,
    FILL_VALUE,
    INTERP_TYPE,
    OUTPUT_DTYPE,
    REFERENCE,
    SIZE,
    WarpingOperator,
    WarpPlan,
    WarpPlans,
)
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    OutputSpec,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, fixed_arrays, on_photo, pictures

_OF_VOLUMES = [0.9, 0.1, 0.0, 2.0, -0.1, 0.8, 0.1, 1.0, 0.0, 0.01, 1.1, -0.1]


@register_operator
class WarpAffine(WarpingOperator):
    """Warps images by an affine matrix, which maps output to input coordinates unless ``inverse_map=False``."""

    schema = Schema(
        name="WarpAffine",
        inputs=(
            Input(
                "data",
                ("HWC", "FHWC", "DHWC", "FDHWC"),
                doc="Images or volumes.",
            ),
            Input("mtx", device="match_or_cpu", doc="The matrix, unless it is an argument."),
        ),
        min_inputs=1,
        arguments=(
            DTYPE,
            FILL_VALUE,
            INTERP_TYPE,
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
            OUTPUT_DTYPE,
            REFERENCE,
            SIZE,
        ),
        sequences=True,
        volumetric=True,
        examples=(
            Example({"matrix": [0.9, 0.2, 3.0, -0.1, 1.1, 2.0]}),
            Example(inputs=(pictures, fixed_arrays([[0.9, 0.2, 3], [-0.1, 1.1, 2]]))),
            Example({"matrix": _OF_VOLUMES}, layout="DHWC"),
            Example({"matrix": _OF_VOLUMES}, layout="FDHWC"),
        ),
        shown=(on_photo(matrix=[0.8, 0.3, 10.0, -0.2, 0.9, 20.0], fill_value=0.0),),
        equivalents=(
            Equivalent(
                "cv2.warpAffine",
                'Equal with `reference="opencv"`, and with `WARP_INVERSE_MAP` unless `inverse_map=False`. Otherwise its pixels have '
                "their centres at whole numbers, here at halves; with the matrix moved accordingly, values differ by at most 1.",
            ),
            Equivalent(
                "torchvision.transforms.v2.functional.affine",
                "It takes angle, translation, scale and shear instead of a matrix.",
            ),
        ),
    )

    def setup(self) -> None:
        super().setup()
        self.maps_backwards = not self.follows_opencv or bool(self.args["inverse_map"])

    def describe(self, workspace: Workspace[None]) -> list[OutputSpec]:
        if len(workspace.inputs) > 1 and workspace.inputs[1].dtype != FLOAT:
            raise RuntimeError(f"Matrices must be float, got {dtype_name(workspace.inputs[1].dtype)}")
        return super().describe(workspace)

    def plan_warps(self, samples: Samples[None, WarpPlan, WarpPlans], extents: np.ndarray) -> WarpPlans:
        count, rank = extents.shape
        if len(samples.workspace.inputs) > 1:
            matrices = self._matrices(samples, rank)
        else:
            matrices = samples.derived(("matrix",), ("matrix", rank), lambda: self._matrices(samples, rank))
        if matrices is not None and len(matrices) < count:
            matrices = matrices.repeat(count, axis=0)
        wanted = self.wanted_extents(samples, rank)
        return WarpPlans(matrices, extents if wanted is None else np.broadcast_to(wanted, extents.shape))

    def _matrices(self, samples: Samples, rank: int) -> np.ndarray | None:
        """Return matrices that map output to input coordinates, or those to pass to OpenCV; None if they are on the GPU.

        There is one matrix for each sample, or one for all.
        """
        matrices = self._given_matrices(samples, rank)
        if matrices is not None and self.follows_opencv:
            # OpenCV inverts the matrices itself.
            return matrices.astype(np.float32)
        if matrices is None or self.args["inverse_map"]:
            return matrices
        return np.array([inverted(matrix) for matrix in matrices])

    def _given_matrices(self, samples: Samples, rank: int) -> np.ndarray | None:
        """Return the matrices that the user passed; None if they are on the GPU."""
        if len(samples.workspace.inputs) > 1:
            return _matrices_of_input(samples, rank)
        if not samples.given("matrix"):
            raise RuntimeError("`warp_affine` needs a matrix: as an argument, or as the second input")
        computed, values = samples.tensors("matrix"), samples.values("matrix")
        if computed is not None and computed.shape[1:] != (rank, rank + 1):
            raise RuntimeError(
                f"Affine mapping parameters must be a list of {rank} x {rank + 1} tensors, got shape {list(computed.shape[1:])}"
            )
        if values.shape[1] != rank * (rank + 1):
            raise RuntimeError(
                f"The matrix has {values.shape[1]} elements, expected {rank * (rank + 1)} ({rank}x{rank + 1}) for "
                f"{rank}-dimensional images"
            )
        return values.reshape(-1, rank, rank + 1)

    def matrices(self, workspace: Workspace[None, WarpPlan]) -> Sequence[Any]:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.warp import prepared_matrices

        samples = workspace.live
        if len(workspace.inputs) < 2 or workspace.inputs[1].device_type != "gpu":
            return super().matrices(workspace)
        rank = len(samples[0].plan.extents)
        return prepared_matrices(locate_all(workspace.inputs[1], samples), rank, not self.args["inverse_map"])


def _matrices_of_input(samples: Samples, rank: int) -> np.ndarray | None:
    batch = samples.workspace.inputs[1]
    for shape in samples.of(batch.shapes):
        if shape != (rank, rank + 1):
            raise RuntimeError(
                f"The matrices must be of shape ({rank}, {rank + 1}), got a tensor of shape {list(shape)}"
            )
    return None if batch.device_type == "gpu" else np.array(samples.of(batch.samples), np.float64)
