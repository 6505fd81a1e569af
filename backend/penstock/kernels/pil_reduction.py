"""Reduction of images by integer factors, as Pillow does before resizing with a `reducing_gap` (`Reduce.c`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.kernels.resize_shapes import AxisPlan

# The filters' supports, in samples.
_SUPPORT = {"box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos": 3.0}


@dataclass(frozen=True)
class Reduction:
    """How to reduce one axis.

    Attributes:
        factor: the number of samples that become one.
        start, stop: the range of positions to reduce.
    """

    factor: int
    start: int
    stop: int

    def rest(self, plan: AxisPlan) -> AxisPlan:
        """Return the plan for resizing the reduced axis."""
        size = -(-(self.stop - self.start) // self.factor)
        start, end = (plan.start - self.start) / self.factor, (plan.end - self.start) / self.factor
        return AxisPlan(size, plan.size_out, start, end)


def reduction_of(plan: AxisPlan, name: str, gap: float) -> Reduction:
    """Return how to reduce an axis, so that the filter ``name`` still has to shrink it by a factor of at least ``gap``."""
    covered = plan.end - plan.start
    scale = covered / plan.size_out
    reach = (_SUPPORT.get(name, 0.5) - 0.5) * scale
    start, stop = max(0, int(plan.start - reach)), min(plan.size_in, math.ceil(plan.end + reach))
    return Reduction(int(covered / plan.size_out / gap) or 1, start, stop)


def reduce_image(image: np.ndarray, vertical: Reduction, horizontal: Reduction) -> np.ndarray:
    """Return a uint8 image (H, W, C) reduced to the means of its blocks; blocks at the end may be smaller."""
    from penstock.kernels.cpu.block_means import block_means

    height, width = (-(-(axis.stop - axis.start) // axis.factor) for axis in (vertical, horizontal))
    result = np.empty((height, width, image.shape[2]), np.uint8)
    part = image[vertical.start : vertical.stop, horizontal.start : horizontal.stop]
    block_means(part, vertical.factor, horizontal.factor, result)
    return result
