"""`slice`: a box of each sample, by anchor and shape or by start and end."""

from __future__ import annotations

import numpy as np

from penstock.kernels.windows import Region, apply_policy
from penstock.operators.image._boxes import box_regions, check_box_arguments, check_box_inputs
from penstock.operators.image._windows import (
    EXTENDING_POLICY_ARGUMENTS,
    Regions,
    WindowOperator,
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
from penstock.schema.example_data import Example, fixed_arrays, on_photo, pictures


@register_operator
class Slice(WindowOperator[None]):
    """Cuts a box out of each sample.

    The box comes from the inputs anchor and shape (in the order of ``axes`` or ``axis_names``; x before y by default),
    or from one of ``start`` and ``rel_start`` with one of ``end``, ``rel_end``, ``shape`` and ``rel_shape``. Start and
    end are rounded half away from zero.
    """

    schema = Schema(
        name="Slice",
        inputs=(
            Input("data", doc="Data of any type and shape."),
            Input("anchor", device="match_or_cpu", doc="Where the box begins: 1-D, of numbers."),
            Input("shape_input", device="match_or_cpu", doc="How far the box reaches: 1-D, of numbers."),
        ),
        min_inputs=1,
        arguments=(
            *EXTENDING_POLICY_ARGUMENTS,
            Argument(
                "axes", "int32[]", [1, 0], "Indices of the dimensions that the other arguments apply to.", tensor=True
            ),
            Argument(
                "axis_names",
                "layout",
                "WH",
                "Letters of the dimensions that the other arguments apply to, as in the layout.",
            ),
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument("end", "int32[]", None, "End of the slice in samples.", tensor=True),
            Argument("normalized_anchor", "bool", True, "The positional anchor is a fraction of the input's extent."),
            Argument("normalized_shape", "bool", True, "The positional shape is a fraction of the input's extent."),
            Argument(
                "output_dtype",
                "DALIDataType",
                None,
                "Old name of `dtype`.",
                deprecated=Deprecation("0.24", renamed_to="dtype"),
            ),
            Argument("rel_end", "float[]", None, "End of the slice as a fraction of the input's extent.", tensor=True),
            Argument(
                "rel_shape",
                "float[]",
                None,
                "Extents relative to those of the input's dimensions; negative: takes what is left.",
                tensor=True,
            ),
            Argument(
                "rel_start", "float[]", None, "Start of the slice as a fraction of the input's extent.", tensor=True
            ),
            Argument("shape", "int32[]", None, "Extents of the slice in samples.", tensor=True),
            Argument("start", "int32[]", None, "Start of the slice in samples.", tensor=True),
        ),
        volumetric=True,
        examples=(
            Example({"start": [2, 3], "end": [9, 12]}),
            Example({"start": [2, 3], "shape": [5, 6], "axes": [0, 1]}),
            Example({"rel_start": [0.1, 0.2], "rel_end": [0.7, 0.8], "axis_names": "HW"}),
            Example({"rel_start": [0.1, 0.2], "rel_shape": [0.4, 0.5]}),
            Example(inputs=(pictures, fixed_arrays([0.1, 0.2]), fixed_arrays([0.5, 0.6]))),
            Example(
                {"normalized_anchor": False, "normalized_shape": False},
                (pictures, fixed_arrays([3, 2]), fixed_arrays([9, 12])),
            ),
        ),
        shown=(
            on_photo(start=[20, 60], end=[100, 200], axis_names="HW"),
            on_photo(
                "Beyond the image",
                start=[-30, -30],
                shape=[160, 160],
                axis_names="HW",
                out_of_bounds_policy="pad",
                fill_values=[255.0],
            ),
        ),
        equivalents=(
            Equivalent(
                "numpy.s_",
                "Brackets on a node (`images[20:100, 60:200]`) mean the same; `slice` also takes fractions, and "
                "can pad.",
            ),
        ),
    )

    def setup(self) -> None:
        super().setup()
        check_box_arguments(self)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch, *boxes = workspace.inputs
        if boxes:
            # Output shapes depend on the data, so plans can't be cached by shape.
            self.plans_by_shape = False
        if any(box.device_type == "gpu" for box in boxes):
            workspace.kind = None
        check_box_inputs(self, workspace)
        # Output shapes depend on the boxes, so boxes on the GPU are copied to the host, all boxes of a batch at once.
        workspace.inputs = [batch, *(box.as_cpu() for box in boxes)]
        return [OutputSpec(window_type(self, batch), batch.layout(), batch.ndim())]

    def infer_batch(self, samples: Samples[None, Region, Regions]) -> tuple[np.ndarray, Regions]:
        shapes = samples.shapes()
        regions = box_regions(samples, shapes, samples.workspace.inputs[0].layout())
        apply_policy(shapes, regions.anchors, regions.extents, self.policy)
        return regions.extents, regions

    def channel_axis(self, workspace: Workspace) -> int | None:
        batch = workspace.inputs[0]
        layout = batch.layout()
        axis: int = layout.find("C") if layout else batch.ndim() - 1
        return axis if axis >= 0 else None
