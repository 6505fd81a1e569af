"""`resize`: images, volumes and sequences of images in another size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32, INTERP_CUBIC
from penstock.operators.image._references import REFERENCE_ARGUMENTS, ReferenceResizing
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Spatial
from penstock.operators.image._resize_arguments import (
    FILTER_ARGUMENTS,
    IMAGE_LAYOUTS,
    SIZE_ARGUMENTS,
    SIZE_EXAMPLES,
    VOLUME_LAYOUTS,
)
from penstock.schema import (
    Alias,
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


@register_operator
class Resize(ReferenceResizing):
    """Resamples images to another size with a separable filter.

    The centre of output pixel j lies at ``(j + 0.5) * scale - 0.5`` in the input; beyond the border the edge is
    repeated.
    """

    schema = Schema(
        name="Resize",
        inputs=(Input("input", IMAGE_LAYOUTS + VOLUME_LAYOUTS, doc="Images of uint8, int16, uint16 or float."),),
        arguments=(
            *FILTER_ARGUMENTS,
            *SIZE_ARGUMENTS,
            Argument(
                "image_type",
                "DALIImageType",
                None,
                "Colour space of the input.",
                deprecated=Deprecation("0.25", removed=True),
            ),
            *REFERENCE_ARGUMENTS,
            Argument("save_attrs", "bool", False, "A second output holds the input's extents (INT32: D, H, W)."),
        ),
        outputs=lambda arguments: 2 if arguments.get("save_attrs") else 1,
        volumetric=True,
        aliases=(Alias("experimental__Resize"),),
        examples=(
            Example({"resize_x": 20.0, "resize_y": 14.0}),
            Example({"resize_z": 3.0}, layout="DHWC"),
            *SIZE_EXAMPLES,
        ),
        shown=(
            on_photo(size=[80, 80]),
            on_photo("Fit into a square", size=[100, 100], mode="not_larger"),
            on_photo(
                "A region, enlarged", size=[160, 160], roi_start=[30, 90], roi_end=[70, 130], interp_type=INTERP_CUBIC
            ),
        ),
        equivalents=(
            Equivalent("torchvision.transforms.v2.Resize", "As Pillow does."),
            Equivalent(
                "PIL.Image.Image.resize",
                "It rounds between the axes, and leaves out what lies beyond the border, where here the nearest "
                "pixel is repeated; inside, bilinear results differ by at most 1.",
            ),
            Equivalent(
                "cv2.resize",
                "It widens no filter when it shrinks, as with `antialias=False`; bilinear results then differ by "
                "at most 1. Its cubic filter is sharper, and its nearest pixel another.",
            ),
        ),
    )

    def setup(self) -> None:
        # A launch can have only one output.
        self.launches = not self.args["save_attrs"]
        super().setup()

    def describe(self, workspace: Workspace[Spatial]) -> list[OutputSpec]:
        specs = super().describe(workspace)
        return [*specs, OutputSpec(INT32, "", 1)] if self.args["save_attrs"] else specs

    def infer_batch(
        self, samples: Samples[Spatial, ResamplePlan, ResamplePlans]
    ) -> tuple[Sequence[np.ndarray], ResamplePlans]:
        shapes, plans = super().infer_batch(samples)
        if not self.args["save_attrs"]:
            return shapes, plans
        return [*shapes, np.full((len(samples), 1), samples.state.axes)], plans

    def compute(self, sample: Sample[Spatial, ResamplePlan]) -> None:
        super().compute(sample)
        if self.args["save_attrs"]:
            sample.outputs[1][...] = self._extents(sample)

    def compute_batch(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
        from penstock.kernels.cuda.launch import locate_all, upload
        from penstock.kernels.cuda.window import WindowCopy, copy_windows

        super().compute_batch(workspace)
        if self.args["save_attrs"]:
            samples = workspace.live
            extents = upload([self._extents(sample) for sample in samples])
            targets = locate_all(workspace.outputs[1], samples)
            copy_windows([WindowCopy(own, target) for own, target in zip(extents, targets)])

    def _extents(self, sample: Sample[Spatial, ResamplePlan]) -> np.ndarray:
        first, count = sample.workspace.state
        return np.array(sample.shapes[0][first : first + count], np.int32)
