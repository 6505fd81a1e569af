"""`paste`: images on a larger canvas."""

from __future__ import annotations

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import UINT8, dtype_name
from penstock.kernels.windows import Region
from penstock.operators.image._windows import Regions, copy_region, copy_regions, region_copy, region_records
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    OutputSpec,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import on_photo
from penstock.schema.image_chain import ChainOperator, Placement


@register_operator
class Paste(ChainOperator[None, Region, Regions]):
    """Places each image on a canvas ``ratio`` times its size.

    >>> images = fn.paste(images, ratio=2.0, fill_value=[255, 255, 255])  # doctest: +SKIP
    """

    schema = Schema(
        name="Paste",
        inputs=(Input("input", ("HWC",), doc="Images of uint8."),),
        arguments=(
            Argument(
                "fill_value",
                "int32[]",
                None,
                "Value of the canvas: one, or one for each channel.",
                required=True,
                example=[9],
            ),
            Argument("min_canvas_size", "float", 0.0, "The minimum extent of the canvas, in pixels.", tensor=True),
            Argument("n_channels", "int32", 3, "Channels of the images."),
            Argument(
                "paste_x", "float", 0.5, "Horizontal position of the image, from 0 (left) to 1 (right).", tensor=True
            ),
            Argument(
                "paste_y", "float", 0.5, "Vertical position of the image, from 0 (top) to 1 (bottom).", tensor=True
            ),
            Argument(
                "ratio",
                "float",
                None,
                "Extents of the canvas over the image's; at least 1.",
                required=True,
                tensor=True,
                example=1.5,
            ),
        ),
        shown=(on_photo(ratio=1.5, fill_value=[230, 230, 230], paste_x=0.2, paste_y=0.8),),
        equivalents=(
            Equivalent("PIL.Image.Image.paste", "It takes the place in pixels, and an image to paste on."),
            Equivalent("torchvision.transforms.v2.functional.pad", "It takes the widths of the margins."),
        ),
    )

    def setup(self) -> None:
        fill, channels = self.args["fill_value"], self.args["n_channels"]
        if len(fill) not in (1, channels):
            raise RuntimeError(
                f'Argument "fill_value" expects either a single value or a list of {channels} elements. {len(fill)} given.'
            )
        # Keep the lowest eight bits, like an integer conversion without saturation.
        self._fill = [value & 255 for value in fill]

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype != UINT8:
            raise RuntimeError(
                f"Unsupported input type: requested type: uint8 current buffer type: {dtype_name(batch.dtype)}"
            )
        return [OutputSpec(UINT8, layout, 3)]

    def infer_batch(self, samples: Samples[None, Region, Regions]) -> tuple[np.ndarray, Regions]:
        shapes = samples.shapes()
        ratios, least = samples.scalars("ratio"), samples.scalars("min_canvas_size")
        for channels in shapes[:, 2].tolist():
            if len(self._fill) not in (1, channels):
                raise RuntimeError(f"The image has {channels} channels, but `fill_value` has {len(self._fill)} entries")
        if (ratios < 1).any():
            raise RuntimeError(f"ratio of less than 1 is not supported, got {ratios.min():g}")
        if (least <= -1).any():
            raise RuntimeError(f"min_canvas_size_ of less than 0 is not supported, got {least.min():g}")
        positions = np.empty((len(samples), 2))
        for axis, name in enumerate(("paste_y", "paste_x")):
            own = positions[:, axis] = samples.scalars(name)
            if not ((own >= 0) & (own <= 1)).all():
                wrong = next(position for position in own.tolist() if not 0 <= position <= 1)
                raise RuntimeError(f"{name} must be in range [0, 1], got {wrong:g}")
        canvas = (ratios[:, None].astype(np.float32) * shapes[:, :2].astype(np.float32)).astype(np.int64)
        canvas = np.maximum(canvas, least[:, None].astype(np.int64))
        # The canvas is a window that reaches outside the image.
        anchors = np.zeros_like(shapes)
        anchors[:, :2] = -(positions.astype(np.float32) * (canvas - shapes[:, :2]).astype(np.float32)).astype(np.int64)
        extents = np.concatenate([canvas, shapes[:, 2:]], axis=1)
        return extents, Regions(anchors, extents)

    def compute(self, sample: Sample[None, Region]) -> None:
        copy_region(sample.inputs[0], sample.plan, self._fill, 2, sample.outputs[0])

    is_placement = True
    launches = True
    repeats_plans = True

    def stage_records(self, workspace: Workspace[None, Region, Regions]) -> StageRecords | None:
        return region_records(workspace, self._fill, 2)

    def stage(self, sample: Sample[None, Region]) -> Placement:
        return region_copy(sample.plan, sample.shapes[0], self._fill, 2)

    def compute_batch(self, workspace: Workspace) -> None:
        copy_regions(workspace, self._fill, 2)
