"""`crop_mirror_normalize` as the store that ends a chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penstock.kernels.windows import Region
from penstock.operators.image._windows import CropRules, Regions
from penstock.schema import PlanColumns
from penstock.schema.image_chain import Pixels, Store
from penstock.schema.operator import Sample, Shape


@dataclass(slots=True)
class CmnPlan:
    """The work for one sample.

    Attributes:
        region: the window, in the input's dimensions.
        mirror: whether W is reversed.
        mean, factor: for each channel, in ``(x - mean) * factor + shift``.
        shift: added last.
        channels: of the output, padding included.
        fill: for each channel of the output.
    """

    region: Region
    mirror: bool
    mean: np.ndarray
    factor: np.ndarray
    shift: float
    channels: int
    fill: np.ndarray


class ChannelValues(NamedTuple):
    """The per-channel values of a :class:`CmnPlan`."""

    mean: np.ndarray
    factor: np.ndarray
    shift: float
    channels: int
    fill: np.ndarray


class CmnRules(NamedTuple):
    """What is done with all images of all batches.

    Attributes:
        crop: the window.
        values: per-channel values.
        mirrored: whether W is reversed; a drawn mirror comes apart.
    """

    crop: CropRules
    values: ChannelValues
    mirrored: bool


@dataclass(eq=False)
class CmnPlans(PlanColumns[CmnPlan]):
    """The work for many samples.

    Attributes:
        regions: the windows.
        mirror: whether W is reversed.
        values: per-channel values; samples with equal values share the object.
    """

    regions: Regions
    mirror: np.ndarray
    values: list[ChannelValues]

    def __len__(self) -> int:
        return len(self.values)

    def row(self, number: int) -> CmnPlan:
        return CmnPlan(self.regions.row(number), bool(self.mirror[number]), *self.values[number])

    @property
    def common_values(self) -> ChannelValues | None:
        """The per-channel values if all samples share them, else None."""
        first = self.values[0]
        return first if all(own is first for own in self.values) else None


@dataclass(frozen=True)
class StoredAs:
    """The order of dimensions in input and output.

    Attributes:
        layout: of the input.
        permutation: for each output dimension, the input dimension.
    """

    layout: str
    permutation: tuple[int, ...]

    @property
    def is_planar(self) -> bool:
        """Whether the last dimension is W."""
        return self.layout[self.permutation[-1]] == "W"

    @property
    def is_of_images(self) -> bool:
        """Whether the data are images, or stacks of images, whose output is CHW or HWC."""
        output = "".join(self.layout[axis] for axis in self.permutation)
        outer = self.layout.removesuffix("HWC")
        return self.layout.endswith("HWC") and output in (outer + "CHW", outer + "HWC")


@dataclass(frozen=True)
class NormalizingStore(Store):
    """A window of a sample, mirrored, normalized, converted, transposed, and filled where it reaches outside.

    Attributes:
        plan: the work.
        kept: the order of dimensions.
        shape_in: of the input.
        shape: of the output.
    """

    plan: CmnPlan
    kept: StoredAs
    shape_in: Shape
    shape: Shape

    writes_views = True

    @property
    def layout(self) -> str:
        """The input's layout."""
        return self.kept.layout

    @property
    def permutation(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.kept.permutation

    @property
    def is_planar(self) -> bool:
        """Whether the last dimension is W."""
        return self.kept.is_planar

    @property
    def is_of_images(self) -> bool:
        """Whether the data are images, or whole stacks of images, whose output is CHW or HWC."""
        region, count = self.plan.region, len(self.layout) - 3
        return (
            self.kept.is_of_images
            and region.anchor[:count] == (0,) * count
            and region.extents[:count] == self.shape_in[:count]
        )

    @property
    def is_inside(self) -> bool:
        """Whether the window lies within the input, so that nothing is filled."""
        return self.plan.region.inside(self.shape_in)

    def place_of_image(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the input that is kept, and its place in the window after mirroring."""
        inside, place = self.plan.region.overlap(self.shape_in)
        if not self.plan.mirror:
            return inside, place
        axis = self.layout.index("W")
        width, part = self.plan.region.extents[axis], place[axis]
        return inside, (*place[:axis], slice(width - part.stop, width - part.start), *place[axis + 1 :])

    def _source_region(self, window: Region) -> Region:
        """The region of the input, possibly partly outside it, for a part of the output with all its channels."""
        anchor, extents = list(self.plan.region.anchor), list(self.plan.region.extents)
        for place, axis in enumerate(self.permutation):
            if self.layout[axis] == "C":
                continue
            start, size = window.anchor[place], window.extents[place]
            if self.layout[axis] == "W" and self.plan.mirror:
                start = extents[axis] - start - size
            anchor[axis], extents[axis] = anchor[axis] + start, size
        return Region(tuple(anchor), tuple(extents))

    def covers(self, window: Region) -> Region:
        place = self.permutation.index(self.layout.index("C"))
        return Region(
            (*window.anchor[:place], 0, *window.anchor[place + 1 :]),
            (*window.extents[:place], self.shape[place], *window.extents[place + 1 :]),
        )

    def reads(self, window: Region) -> Region:
        inside, _ = self._source_region(window).overlap(self.shape_in)
        return Region(tuple(s.start for s in inside), tuple(s.stop - s.start for s in inside))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.kernels.cpu.normalize import crop_mirror_normalize

        plan, pixels = self.plan, source.array
        if window.extents != self.shape or pixels.shape != self.shape_in or any(source.origin):
            region, read = self._source_region(window), self.reads(window)
            pixels = source.part(read)
            plan = replace(plan, region=Region(_difference(region.anchor, read.anchor), region.extents))
        if pixels.dtype == np.float16:
            pixels = pixels.astype(np.float32)
        crop_mirror_normalize(pixels, self.layout, plan, list(self.permutation), target)


def _difference(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip(one, other))
