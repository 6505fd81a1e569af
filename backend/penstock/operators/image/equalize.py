"""`equalize`: histogram equalization."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.schema import Alias, Equivalent, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class Equalize(Operator[str]):
    """Equalizes the histogram of each channel."""

    keeps_frame_shape = True
    schema = Schema(
        name="Equalize",
        inputs=(Input("input", ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), doc="Images of uint8."),),
        sequences=True,
        aliases=(Alias("experimental__Equalize", deprecated_since="2.0"),),
        shown=(on_photo(),),
        equivalents=(
            Equivalent("cv2.equalizeHist", "One channel."),
            Equivalent("PIL.ImageOps.equalize", "It spreads values by another rule, so they differ."),
            Equivalent("torchvision.transforms.v2.functional.equalize", "As Pillow does."),
        ),
    )

    def describe(self, workspace: Workspace[str]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(
                f"Unsupported input type for equalize operator: {dtype_name(batch.dtype)}. Expected input type: `uint8_t`."
            )
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(UINT8, workspace.state, batch.ndim())]

    def infer(self, sample: Sample[str]) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample[str]) -> None:
        from penstock.kernels.cpu.histogram import equalize

        source, target = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        if not target.size:
            if sample.workspace.state.endswith("C") and source.shape[-1] != 1:
                raise RuntimeError(f"Cannot equalize an empty image of several channels, of shape {list(source.shape)}")
            return
        if sample.workspace.state.endswith("C"):
            equalize(source, target)
            return
        for plane, out in zip(_planes(source), _planes(target)):
            equalize(plane, out)

    def compute_batch(self, workspace: Workspace[str]) -> None:
        from penstock.kernels.cuda.histogram import equalize_planes, planes_of, whole
        from penstock.kernels.cuda.launch import locate_all

        samples, axis = workspace.live, workspace.state.index("H")
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        planes = [plane for source, target in zip(sources, targets) for plane in planes_of(source, target, axis)]
        equalize_planes((plane, whole(plane)) for plane in planes)


def _planes(image: np.ndarray) -> np.ndarray:
    """Return an image of layout HW or CHW as single-channel planes."""
    return image.reshape(-1, *image.shape[-2:], 1)
