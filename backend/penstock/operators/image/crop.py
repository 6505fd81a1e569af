"""`crop`: a window of each image."""

from __future__ import annotations

import numpy as np

from penstock.kernels.windows import Region, check_policy
from penstock.operators.image._windows import (
    CROP_ARGUMENTS,
    POLICY_ARGUMENTS,
    Regions,
    check_crop_arguments,
    copy_region,
    copy_regions,
    crop_regions,
    region_copy,
    window_type,
)
from penstock.schema import (
    Argument,
    Deprecation,
    Equivalent,
    Input,
    OutputSpec,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.image_chain import ChainOperator, Placement


@register_operator
class Crop(ChainOperator[str, Region, Regions]):
    """Crops a window of the given extents at a relative position."""

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
            *POLICY_ARGUMENTS,
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

    plans_by_shape = True

    def setup(self) -> None:
        check_crop_arguments(self)
        check_policy(self.args["out_of_bounds_policy"])

    def describe(self, workspace: Workspace[str]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(window_type(self, batch), workspace.state, batch.ndim())]

    def infer_batch(self, samples: Samples[str, Region, Regions]) -> tuple[np.ndarray, Regions]:
        regions = crop_regions(samples, samples.shapes(), samples.state, self.args["out_of_bounds_policy"])
        return regions.extents, regions

    def compute(self, sample: Sample[str, Region]) -> None:
        copy_region(
            sample.inputs[0],
            sample.plan,
            self.args["fill_values"],
            _channel_axis(sample.workspace.state),
            sample.outputs[0],
        )

    takes_windows = True

    def stage(self, sample: Sample[str, Region]) -> Placement:
        return region_copy(
            sample.plan,
            sample.shapes[0],
            self.args["fill_values"],
            _channel_axis(sample.workspace.state),
            self.args["dtype"] not in (None, sample.workspace.inputs[0].dtype),
        )

    def compute_batch(self, workspace: Workspace[str]) -> None:
        copy_regions(workspace, self.args["fill_values"], _channel_axis(workspace.state))


def _channel_axis(layout: str) -> int | None:
    axis = layout.find("C")
    return axis if axis >= 0 else None
