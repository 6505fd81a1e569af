"""What the operators that displace pixels have in common."""

from __future__ import annotations

import numpy as np

from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Workspace
from penstock.types import FLOAT, INTERP_LINEAR, INTERP_NN, UINT8, dtype_name

INPUTS = (Input("input", ("HWC",), doc="Images of uint8 or float."),)
ARGUMENTS = (
    Argument("fill_value", "float", 0.0, "What lies outside of the input."),
    Argument("interp_type", "DALIInterpType", INTERP_NN, "INTERP_NN or INTERP_LINEAR."),
    Argument(
        "mask",
        "int32",
        1,
        "Computed in the graph, 0 leaves a sample as it is. A constant has no effect.",
        tensor=True,
    ),
)


class DisplacementOperator(Operator):
    """The base of operators that take each pixel from where two maps say."""

    def setup(self) -> None:
        if self.args["interp_type"] not in (INTERP_NN, INTERP_LINEAR):
            raise RuntimeError(f"Unsupported interpolation {self.args['interp_type']}: use INTERP_NN or INTERP_LINEAR")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, layout, 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        mask = sample.tensor_argument("mask")
        # Whether the sample is displaced.
        sample.plan = mask is None or bool(sample["mask"])
        return sample.shapes[0]

    def maps(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """The x and y from which each pixel is taken, float32 of shape (height, width)."""
        raise NotImplementedError

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.remap import remap

        source, target = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        if not sample.plan or not source.size:
            target[...] = source
            return
        mapx, mapy = self.maps(*source.shape[:2])
        fill = self.args["fill_value"]
        linear = self.args["interp_type"] == INTERP_LINEAR
        remap(source, mapx, mapy, -0.5, linear, target, fill if source.dtype == np.float32 else int(fill))
