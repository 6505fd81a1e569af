"""Chain stages that resize float images as PyTorch does, fused with the normalization before them where possible."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from penstock.kernels.windows import Region
from penstock.operators.image._lookup_store import LookupStore
from penstock.operators.image._resample_plans import ResamplePlan
from penstock.schema import Sample
from penstock.schema.image_chain import Pixels, Sampling, Stage, Store
from penstock.schema.operator import Shape

CHANNELS = 3
"""The number of channels that an image must have to be resampled by the fused kernels of ``torch_pixels``."""


@dataclass(frozen=True)
class FloatResampling(Sampling):
    """Resizes a sample as a whole, not in strips.

    Attributes:
        plan: how to resample the spatial axes.
        first: the first spatial dimension.
        shape_in: the input's shape.
        neighbours: the filter, `bilinear` or `bicubic`, if the resampling can be fused, else None: see
            :attr:`FloatPlan.neighbours`.
    """

    plan: ResamplePlan
    first: int
    shape_in: Shape
    neighbours: str | None

    is_whole = True

    @functools.cached_property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.plan.resized(self.shape_in, self.first)

    def reads(self, window: Region) -> Region:
        return Region.whole(self.shape_in)

    def following(self, store: Store) -> Stage | None:
        if not isinstance(store, LookupStore) or not store.is_computed or store.factors[:, 3].any():
            return None
        planes = self.first == 1 and self.shape_in[0] == CHANNELS
        return ResampledValues(self, store) if planes and self.neighbours else None

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        self.plan.resample_images(source.contiguous(self.reads(window)), target, self.first)


@dataclass(frozen=True)
class ResampledValues(Stage):
    """Normalizes an image and resizes the resulting planes, row by row.

    Attributes:
        resampling, store: the two stages that this stage replaces; ``store`` comes first.
    """

    resampling: FloatResampling
    store: LookupStore

    is_whole = True

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.resampling.shape

    def reads(self, window: Region) -> Region:
        return self.store.reads(self.resampling.reads(window))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.kernels.cpu.torch_pixels import resample_to_planes

        image, cubic = source.contiguous(self.reads(window)), self.resampling.neighbours == "bicubic"
        resample_to_planes(image, self.store.factors, cubic, target)
