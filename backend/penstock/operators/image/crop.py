"""`crop`: a window of each image."""

from __future__ import annotations

from penstock.kernels.windows import apply_policy, check_policy
from penstock.operators.image._windows import (
    CROP_ARGUMENTS,
    POLICY_ARGUMENTS,
    check_crop_arguments,
    copy_region,
    copy_regions,
    crop_region,
    window_type,
)
from penstock.schema import (
    Argument,
    Deprecation,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)


@register_operator
class Crop(Operator):
    """Takes a window of the given extents, placed by its relative position."""

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
    )

    plans_by_shape = True

    def setup(self) -> None:
        check_crop_arguments(self)
        check_policy(self.args["out_of_bounds_policy"])

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(window_type(self, batch), workspace.state, batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape, layout = sample.shapes[0], sample.workspace.state
        region = crop_region(sample, shape, layout, self.args["rounding"])
        sample.plan = apply_policy(region, shape, self.args["out_of_bounds_policy"])
        return sample.plan.extents

    def compute(self, sample: Sample) -> None:
        channel_axis = sample.workspace.state.find("C")
        copy_region(
            sample.inputs[0],
            sample.plan,
            self.args["fill_values"],
            channel_axis if channel_axis >= 0 else None,
            sample.outputs[0],
        )

    def compute_batch(self, workspace: Workspace) -> None:
        channel_axis = workspace.state.find("C")
        copy_regions(workspace, self.args["fill_values"], channel_axis if channel_axis >= 0 else None)
