"""`resize_crop_mirror`: resize, take a window, mirror; only the window is computed."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels.resize_shapes import AxisPlan
from penstock.operators.image._resizing import (
    FILTER_ARGUMENTS,
    IMAGE_LAYOUTS,
    SIZE_ARGUMENTS,
    SIZE_EXAMPLES,
    VOLUME_LAYOUTS,
    ResizingOperator,
)
from penstock.operators.image._windows import CROP_ARGUMENTS, check_crop_arguments, crop_region
from penstock.schema import Alias, Argument, Input, Sample, Schema, register_operator
from penstock.schema.samples import Example


@register_operator
class ResizeCropMirror(ResizingOperator):
    """Resizes images, takes a window of the result and mirrors it.

    The same as ``resize``, ``crop`` and ``flip``, but that only what is kept is computed, and that a window may reach
    outside of the resized image: there the image goes on as its edge does.

    The bits of ``mirror`` name the axes where the layout begins with them (HWC, DHWC). Where other dimensions stand
    before, the bits count from the layout's end as in DALI: with CHW and FHWC, 1 mirrors H, and W is never mirrored;
    with FCHW, neither is.

    >>> images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224], mirror=fn.random.coin_flip())  # doctest: +SKIP
    """

    schema = Schema(
        name="ResizeCropMirror",
        inputs=(Input("input", IMAGE_LAYOUTS + VOLUME_LAYOUTS, doc="Images of uint8, int16, uint16 or float."),),
        arguments=(
            *FILTER_ARGUMENTS,
            *SIZE_ARGUMENTS,
            *CROP_ARGUMENTS,
            Argument(
                "mirror",
                "int32",
                0,
                "Bits that tell which axes are mirrored: 1: W (horizontally), 2: H (vertically), 4: D; shifted by one "
                "for each dimension that the layout has before them.",
                tensor=True,
            ),
        ),
        volumetric=True,
        aliases=(
            Alias(
                "FastResizeCropMirror",
                "1.32",
                arguments=(Argument("antialias", "bool", False, "Widen the filter when an axis shrinks."),),
            ),
        ),
        examples=(
            Example({"resize_x": 20.0, "resize_y": 14.0, "crop": [10.0, 12.0]}),
            Example({"resize_x": 20.0, "resize_y": 14.0, "crop_h": 10.0, "crop_w": 12.0}),
            Example({"resize_z": 3.0, "crop_d": 2.0, "crop_h": 10.0, "crop_w": 12.0}, layout="DHWC"),
            *SIZE_EXAMPLES,
        ),
    )

    plans_by_shape = True

    def setup(self) -> None:
        super().setup()
        check_crop_arguments(self)

    def plan_axes(self, sample: Sample, extents: Sequence[int]) -> list[AxisPlan]:
        axes = super().plan_axes(sample, extents)
        letters = "DHW"[-len(axes) :]
        region = crop_region(sample, [axis.size_out for axis in axes], letters, self.args["rounding"])
        first, _ = sample.workspace.state
        mirrored = [_mirrors(sample["mirror"], len(axes) - 1 - axis - first) for axis in range(len(axes))]
        return [
            axis.window(anchor, extent, mirror)
            for axis, anchor, extent, mirror in zip(axes, region.anchor, region.extents, mirrored)
        ]


def _mirrors(mirror: int, bit: int) -> bool:
    """Whether a bit of an int32 is set; positions wrap around, as those of the processor's shifts do."""
    return bool(mirror >> (bit & 31) & 1)
