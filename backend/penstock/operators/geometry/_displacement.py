"""Base class of operators that displace pixels."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, INTERP_LINEAR, INTERP_NN, UINT8, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Workspace

INPUTS = (Input("input", ("HWC",), doc="Images of uint8 or float."),)
ARGUMENTS = (
    Argument(
        "fill_value",
        "float",
        0.0,
        "Value of pixels outside the input; for uint8, its fraction is dropped, and it wraps around.",
    ),
    Argument("interp_type", "DALIInterpType", INTERP_NN, "INTERP_NN or INTERP_LINEAR."),
    Argument(
        "mask",
        "int32",
        1,
        "0 leaves a sample unchanged if it is computed in the graph; a constant has no effect.",
        tensor=True,
    ),
)

# What to add to coordinates relative to the corner of the first pixel, to make them relative to the pixel's centre.
TO_CENTRES = -0.5


class DisplacementOperator(Operator[None, bool]):
    """Base class of operators that read each output pixel at a displaced position of the input.

    Attributes:
        kind: the type of displacement in the GPU kernel: ``Ball`` or ``Waves``.
    """

    kind: str

    def setup(self) -> None:
        if self.args["interp_type"] not in (INTERP_NN, INTERP_LINEAR):
            raise RuntimeError(f"Unsupported interpolation {self.args['interp_type']}: use INTERP_NN or INTERP_LINEAR")

    def describe(self, workspace: Workspace[None, bool]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, layout, 3)]

    def infer(self, sample: Sample[None, bool]) -> tuple[int, ...]:
        mask = sample.tensor_argument("mask")
        # The plan says whether the sample is displaced; only a tensor argument can turn this off, as a constant has no effect.
        sample.plan = mask is None or bool(sample["mask"])
        return sample.shapes[0]

    def displace(self, source: np.ndarray, linear: bool, target: np.ndarray, fill: float) -> None:
        """Displace an image on the CPU, and write the result to ``target``."""
        raise NotImplementedError

    def waves(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the displacement in x of each row, and that in y of each column; None if ``kind`` is not ``Waves``."""
        return None

    def compute(self, sample: Sample[None, bool]) -> None:
        source, target = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        if not sample.plan or not source.size:
            target[...] = source
            return
        linear = self.args["interp_type"] == INTERP_LINEAR
        self.displace(source, linear, target, self._fill(sample.workspace))

    def compute_batch(self, workspace: Workspace[None, bool]) -> None:
        from penstock.kernels.cuda.displacement import Displacement, displace_images
        from penstock.kernels.cuda.launch import locate_all

        samples, fill = workspace.live, self._fill(workspace)
        waves = {shape: self.waves(*shape) for shape in {sample.shapes[0][:2] for sample in samples if sample.plan}}
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        displacements = [
            Displacement(source, target, fill, sample.plan, waves=waves.get(sample.shapes[0][:2]))
            for sample, source, target in zip(samples, sources, targets)
        ]
        displace_images(self.kind, displacements, self.args["interp_type"] == INTERP_LINEAR, TO_CENTRES)

    def _fill(self, workspace: Workspace[None, bool]) -> float:
        fill = self.args["fill_value"]
        return fill if workspace.inputs[0].dtype == FLOAT else int(fill) % 256
