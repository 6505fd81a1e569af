"""`crop`: a window of each image."""

from __future__ import annotations

from penstock.kernels.windows import apply_policy, check_policy
from penstock.operators.image._windows import check_crop_arguments, copy_region, copy_regions, crop_region, window_type
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
            Argument(
                "crop",
                "float[]",
                None,
                "Extents of the window: (height, width) or (depth, height, width).",
                tensor=True,
            ),
            Argument("crop_d", "float", 0.0, "Depth of the window; 0: all.", tensor=True),
            Argument("crop_h", "float", 0.0, "Height of the window; 0: all.", tensor=True),
            Argument(
                "crop_pos_x", "float", 0.5, "Horizontal place of the window, from 0 (left) to 1 (right).", tensor=True
            ),
            Argument(
                "crop_pos_y", "float", 0.5, "Vertical place of the window, from 0 (top) to 1 (bottom).", tensor=True
            ),
            Argument(
                "crop_pos_z", "float", 0.5, "Place of the window in depth, from 0 (front) to 1 (back).", tensor=True
            ),
            Argument("crop_w", "float", 0.0, "Width of the window; 0: all.", tensor=True),
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "fill_values",
                "float[]",
                [0.0],
                'What pixels outside of the input are, with out_of_bounds_policy="pad": one value, or one for each channel.',
            ),
            Argument(
                "image_type",
                "DALIImageType",
                None,
                "Colour space of the input.",
                deprecated=Deprecation("0.24", removed=True),
            ),
            Argument(
                "out_of_bounds_policy",
                "string",
                "error",
                "A window that reaches outside of the input: `error`, `pad` or `trim_to_shape`.",
            ),
            Argument(
                "output_dtype",
                "DALIDataType",
                None,
                "Old name of `dtype`.",
                deprecated=Deprecation("0.24", renamed_to="dtype"),
            ),
            Argument(
                "rounding",
                "string",
                "round",
                "How the window's start is made an integer: `round` (half away from zero) or `truncate`.",
            ),
        ),
        volumetric=True,
    )

    def setup(self) -> None:
        check_crop_arguments(self)
        check_policy(self.args["out_of_bounds_policy"])

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(window_type(self, batch.dtype), workspace.state, batch.ndim())]

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
