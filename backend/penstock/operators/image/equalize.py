"""`equalize`: flat histograms."""

from __future__ import annotations

import numpy as np

from penstock.schema import Alias, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.types import UINT8, dtype_name


@register_operator
class Equalize(Operator):
    """Spreads each channel's values so that its histogram is as flat as can be."""

    schema = Schema(
        name="Equalize",
        inputs=(Input("input", ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), doc="Images of uint8."),),
        sequences=True,
        aliases=(Alias("experimental__Equalize", deprecated_since="2.0"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(f"Images must be of uint8, got {dtype_name(batch.dtype)}")
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(UINT8, workspace.state, batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.histogram import equalize

        source, target = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        if not target.size:
            return
        if sample.workspace.state.endswith("C"):
            equalize(source, target)
            return
        for plane, out in zip(_planes(source), _planes(target)):
            equalize(plane, out)


def _planes(image: np.ndarray) -> np.ndarray:
    """An image of layout HW or CHW as planes of pixels of one channel."""
    return image.reshape(-1, *image.shape[-2:], 1)
