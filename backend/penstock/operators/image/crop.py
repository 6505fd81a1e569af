"""`crop`: a window of each image."""

from __future__ import annotations

import numpy as np

from penstock.kernels.windows import Region
from penstock.operators.image._windows import (
    CROP_ARGUMENTS,
    EXTENDING_POLICY_ARGUMENTS,
    Regions,
    WindowOperator,
    check_crop_arguments,
    crop_regions,
    window_type,
)
from penstock.schema import (
    Argument,
    Deprecation,
    Equivalent,
    Input,
    OutputSpec,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo


@register_operator
class Crop(WindowOperator[str]):
    """Crops a window of fixed extents at a relative position."""

    schema = Schema(
        name="Crop",
        inputs=(
            Input(
                "input",
                ("HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW"),
                doc="Images of any type.",
            ),
        ),
        arguments=(
            *CROP_ARGUMENTS,
            *EXTENDING_POLICY_ARGUMENTS,
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "output_dtype",
                "DALIDataType",
                None,
                "Old name of `dtype`.",
                deprecated=Deprecation("0.24", renamed_to="dtype"),
            ),
        ),
        volumetric=True,
        examples=(
            Example({"crop": [10.0, 12.0]}),
            Example({"crop_h": 10.0, "crop_w": 12.0}),
            Example({"crop_d": 2.0, "crop_h": 10.0, "crop_w": 12.0}, layout="DHWC"),
        ),
        shown=(
            on_photo(crop=[100, 100]),
            on_photo("At the upper right", crop=[80, 80], crop_pos_x=1.0, crop_pos_y=0.0),
        ),
        equivalents=(
            Equivalent("torchvision.transforms.v2.CenterCrop", "It pads images that are too small."),
            Equivalent(
                "PIL.Image.Image.crop", "It takes corners in pixels, and reaches beyond the image without an error."
            ),
            Equivalent("torchvision.transforms.v2.functional.crop"),
        ),
    )

    described_by_kind = True

    def setup(self) -> None:
        super().setup()
        check_crop_arguments(self)

    def describe(self, workspace: Workspace[str]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(window_type(self, batch), workspace.state, batch.ndim())]

    def infer_batch(self, samples: Samples[str, Region, Regions]) -> tuple[np.ndarray, Regions]:
        regions = crop_regions(samples, samples.shapes(), samples.state, self.policy)
        return regions.extents, regions

    def channel_axis(self, workspace: Workspace) -> int | None:
        axis: int = workspace.state.find("C")
        return axis if axis >= 0 else None
