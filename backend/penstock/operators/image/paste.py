"""`paste`: images on a larger canvas."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.kernels.windows import Region
from penstock.operators.image._windows import copy_region, copy_regions, region_copy
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo
from penstock.schema.image_chain import ChainOperator, Placement


@register_operator
class Paste(ChainOperator[None, Region]):
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
        # The lowest eight bits are kept, like in any integer conversion without saturation.
        self._fill = [value & 255 for value in fill]

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype != UINT8:
            raise RuntimeError(
                f"Unsupported input type: requested type: uint8 current buffer type: {dtype_name(batch.dtype)}"
            )
        return [OutputSpec(UINT8, layout, 3)]

    def infer(self, sample: Sample[None, Region]) -> tuple[int, ...]:
        height, width, channels = sample.shapes[0]
        if len(self._fill) not in (1, channels):
            raise RuntimeError(f"The image has {channels} channels, but `fill_value` has {len(self._fill)} entries")
        ratio, min_extent = sample["ratio"], int(sample["min_canvas_size"])
        if ratio < 1:
            raise RuntimeError(f"ratio of less than 1 is not supported, got {ratio:g}")
        if min_extent < 0:
            raise RuntimeError(f"min_canvas_size_ of less than 0 is not supported, got {sample['min_canvas_size']:g}")
        canvas = [max(int(np.float32(ratio) * np.float32(extent)), min_extent) for extent in (height, width)]
        place = []
        for name, extent, inner in zip(("paste_y", "paste_x"), canvas, (height, width)):
            position = sample[name]
            if not 0 <= position <= 1:
                raise RuntimeError(f"{name} must be in range [0, 1], got {position:g}")
            place.append(int(np.float32(position) * np.float32(extent - inner)))
        # The canvas is a window that reaches outside the image.
        sample.plan = Region((-place[0], -place[1], 0), (canvas[0], canvas[1], channels))
        return sample.plan.extents

    def compute(self, sample: Sample[None, Region]) -> None:
        copy_region(sample.inputs[0], sample.plan, self._fill, 2, sample.outputs[0])

    is_placement = True

    def stage(self, sample: Sample[None, Region]) -> Placement:
        return region_copy(sample.plan, sample.shapes[0], self._fill, 2)

    def compute_batch(self, workspace: Workspace) -> None:
        copy_regions(workspace, self._fill, 2)
