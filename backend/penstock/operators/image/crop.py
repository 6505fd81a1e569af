"""`crop`: a window of each image."""

from __future__ import annotations

from penstock.kernels.windows import Region, apply_policy, check_policy
from penstock.operators.image._windows import (
    CROP_ARGUMENTS,
    POLICY_ARGUMENTS,
    check_crop_arguments,
    copy_region,
    copy_regions,
    crop_region,
    crop_regions,
    region_copy,
    regions_of,
    window_type,
)
from penstock.schema import (
    Argument,
    Deprecation,
    Input,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.image_chain import ChainOperator, Placement
from penstock.schema.samples import Example


@register_operator
class Crop(ChainOperator):
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
        examples=(
            Example({"crop": [10.0, 12.0]}),
            Example({"crop_h": 10.0, "crop_w": 12.0}),
            Example({"crop_d": 2.0, "crop_h": 10.0, "crop_w": 12.0}, layout="DHWC"),
        ),
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

    def infer_batch(self, workspace: Workspace, num_outputs: int) -> list[list[tuple[int, ...]]]:
        # Where the arguments are constant, what is known of a sample serves the next one.
        if workspace.arguments and len(workspace.inputs[0]) and not workspace.failures:
            regions = crop_regions(self, workspace, workspace.inputs[0].shape_array(), workspace.state)
            if regions is not None:
                return [self._infer_regions(workspace, regions_of(*regions))]
        return super().infer_batch(workspace, num_outputs)

    def _infer_regions(self, workspace: Workspace, regions: list[Region]) -> list[tuple[int, ...]]:
        policy, shapes = self.args["out_of_bounds_policy"], workspace.inputs[0].shapes
        workspace.samples = [Sample(self, workspace, index) for index in range(workspace.batch_size)]
        extents: list[tuple[int, ...]] = []
        for sample, region, shape in zip(workspace.samples, regions, shapes):
            try:
                sample.plan = apply_policy(region, shape, policy)
                extents.append(sample.plan.extents)
            except RuntimeError as error:
                extents.append((0,) * len(shape))
                workspace.fail(sample.index, error)
        return extents

    def compute(self, sample: Sample) -> None:
        channel_axis = sample.workspace.state.find("C")
        copy_region(
            sample.inputs[0],
            sample.plan,
            self.args["fill_values"],
            channel_axis if channel_axis >= 0 else None,
            sample.outputs[0],
        )

    takes_windows = True

    def stage(self, sample: Sample) -> Placement:
        channel_axis = sample.workspace.state.find("C")
        return region_copy(
            sample.plan,
            sample.shapes[0],
            self.args["fill_values"],
            channel_axis if channel_axis >= 0 else None,
            self.args["dtype"] not in (None, sample.workspace.inputs[0].dtype),
        )

    def compute_batch(self, workspace: Workspace) -> None:
        channel_axis = workspace.state.find("C")
        copy_regions(workspace, self.args["fill_values"], channel_axis if channel_axis >= 0 else None)
