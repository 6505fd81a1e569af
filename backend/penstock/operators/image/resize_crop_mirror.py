"""`resize_crop_mirror`: resize, crop and mirror, computing only the window."""

from __future__ import annotations

import numpy as np

from penstock.kernels.resize_shapes import window_axes
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Spatial
from penstock.operators.image._resize_arguments import (
    FILTER_ARGUMENTS,
    IMAGE_LAYOUTS,
    SIZE_ARGUMENTS,
    SIZE_EXAMPLES,
    VOLUME_LAYOUTS,
)
from penstock.operators.image._resizing import ResizingOperator, SizeRules
from penstock.operators.image._windows import CROP_ARGUMENTS, check_crop_arguments, crop_regions
from penstock.schema import Alias, Argument, Input, Samples, Schema, register_operator
from penstock.schema.example_data import Example, on_photo


@register_operator
class ResizeCropMirror(ResizingOperator):
    """Resizes images, crops a window of the result and mirrors it.

    Equivalent to ``resize``, ``crop`` and ``flip``, except that only the window is computed, and that it may reach
    outside the resized image, where the edge is repeated.

    If the layout begins with the spatial axes (HWC, DHWC), bit 0 of ``mirror`` mirrors W, bit 1 H and bit 2 D. If other
    dimensions come first, the number of the bit is one less for each of them, modulo 32, as in DALI: with CHW and FHWC, bit
    0 mirrors H and bit 31 W; with FCHW, bit 31 mirrors H and bit 30 W.

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
                zero_dimensional=True,
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
        shown=(on_photo(resize_shorter=120.0, crop=[100, 100], mirror=1),),
    )

    def setup(self) -> None:
        super().setup()
        check_crop_arguments(self)

    def constant_rules(self, samples: Samples) -> SizeRules | None:
        # Size rules cannot describe the crop, which is part of this resize.
        return None

    def plan_axes(
        self, samples: Samples[Spatial, ResamplePlan, ResamplePlans], extents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes, starts, ends = super().plan_axes(samples, extents)
        first, count = samples.state
        regions = crop_regions(samples, sizes, "DHW"[-count:])
        mirrored = samples.derived(("mirror",), ("mirror", first, count), lambda: _mirrored(samples, first, count))
        if len(mirrored) < len(samples):
            mirrored = mirrored.repeat(len(samples), axis=0)
        window_axes(regions.anchors, regions.extents, mirrored, sizes, starts, ends)
        return regions.extents, starts, ends


def _mirrored(samples: Samples, first: int, count: int) -> np.ndarray:
    """Return the axes to mirror: a row for each sample, or one row for all."""
    # Bit positions wrap around at 32, like the CPU's shifts.
    bits = [(count - 1 - axis - first) & 31 for axis in range(count)]
    return samples.values("mirror").astype(np.int64) >> np.array(bits) & 1 > 0
