"""`crop_mirror_normalize` as the store at the end of a chain."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.core.arrays import address, described
from penstock.core.chains import STORE, StageKind, StageRecords, array_part, compute_part
from penstock.kernels.windows import Region
from penstock.operators.image._windows import CropRules, Regions
from penstock.schema import PlanColumns
from penstock.schema.image_chain import Pixels, Store
from penstock.schema.operator import Sample, Shape

if TYPE_CHECKING:
    from typing import Self


@dataclass(slots=True)
class CmnPlan:
    """How to crop, mirror and normalize one sample.

    Attributes:
        region: the crop window, in the order of the input's dimensions.
        mirror: whether W is reversed.
        mean, factor: the mean and factor of each channel, in ``(x - mean) * factor + shift``.
        shift: added last.
        channels: the output's number of channels, including padding.
        fill: the value of each output channel outside the image.
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
    """The rules by which all images are cropped, mirrored and normalized, in the form that compiled code accepts.

    Attributes:
        crop: the rules of the crop window.
        values: per-channel values.
        mirrored: whether W is reversed in all images; a flag per image is passed separately.
    """

    crop: CropRules
    values: ChannelValues
    mirrored: bool


@dataclass(eq=False)
class CmnPlans(PlanColumns[CmnPlan]):
    """How to crop, mirror and normalize many samples.

    Attributes:
        regions: the crop windows.
        mirror: for each sample, whether W is reversed.
        values: sets of per-channel values; samples may share a set.
        which: for each sample, the index of its set in ``values``.
    """

    regions: Regions
    mirror: np.ndarray
    values: list[ChannelValues]
    which: np.ndarray

    def __len__(self) -> int:
        return len(self.which)

    def row(self, number: int) -> CmnPlan:
        return CmnPlan(self.regions.row(number), bool(self.mirror[number]), *self.values[self.which[number]])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        starts = np.cumsum([0, *(len(part.values) for part in parts)])
        which = np.concatenate([part.which + start for part, start in zip(parts, starts)])
        return replace(super().joined(parts), which=which)

    @property
    def common_values(self) -> ChannelValues | None:
        """The per-channel values if all samples share them, else None."""
        return self.values[0] if len(self.values) == 1 else None


@dataclass(frozen=True)
class StoredAs:
    """The order of dimensions in input and output.

    Attributes:
        layout: the input's layout.
        permutation: for each output dimension, the input dimension.
    """

    layout: str
    permutation: tuple[int, ...]

    @property
    def is_planar(self) -> bool:
        """Whether the output's last dimension is W."""
        return self.layout[self.permutation[-1]] == "W"

    @property
    def is_of_images(self) -> bool:
        """Whether the input is an HWC image, or a stack of such images, and the output's images are CHW or HWC."""
        output = "".join(self.layout[axis] for axis in self.permutation)
        outer = self.layout.removesuffix("HWC")
        return self.layout.endswith("HWC") and output in (outer + "CHW", outer + "HWC")


@dataclass(frozen=True)
class NormalizingStore(Store):
    """Crops, mirrors, normalizes, converts and transposes a sample, and fills where the window reaches outside.

    Attributes:
        plan: how to process the sample.
        kept: the order of dimensions: the workspace's state.
        shape_in: the input's shape.
        shape: the output's shape.
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
        """Whether the output's last dimension is W."""
        return self.kept.is_planar

    @property
    def is_of_images(self) -> bool:
        """Whether :attr:`StoredAs.is_of_images` holds and the window contains all images of a stack."""
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
        """Return the part of the input inside the window, and its position in the window after mirroring."""
        inside, place = self.plan.region.overlap(self.shape_in)
        if not self.plan.mirror:
            return inside, place
        axis = self.layout.index("W")
        width, part = self.plan.region.extents[axis], place[axis]
        return inside, (*place[:axis], slice(width - part.stop, width - part.start), *place[axis + 1 :])

    def _source_region(self, window: Region) -> Region:
        """Return the input region for a part of the output that has all channels; it may reach outside the input."""
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
        plan = self.plan
        regions = Regions(np.array([plan.region.anchor]), np.array([plan.region.extents]))
        values = ChannelValues(plan.mean, plan.factor, plan.shift, plan.channels, plan.fill)
        plans = CmnPlans(regions, np.array([plan.mirror]), [values], np.zeros(1, np.int64))
        store_part(plans, self.kept, np.array([self.shape_in]), source, window.anchor, target)


def store_part(
    plans: CmnPlans,
    kept: StoredAs,
    shapes_in: np.ndarray,
    source: Pixels,
    anchor: tuple[int, ...],
    target: np.ndarray,
) -> None:
    """Compute a part of one sample's output on the CPU.

    Args:
        plans: one sample's plans.
        kept: the order of dimensions: the workspace's state.
        shapes_in: the input's shape, int64 of shape (1, rank).
        source: the part of the input that the result depends on, or a larger one.
        anchor: the position of the part in the output.
        target: the array to fill; any strides.
    """
    pixels = source.array.astype(np.float32) if source.array.dtype == np.float16 else source.array
    dtype = np.dtype(np.float32) if target.dtype == np.float16 else target.dtype
    out = np.empty(target.shape, dtype) if target.dtype == np.float16 else target
    stage = store_records(plans, kept, shapes_in, pixels.dtype, dtype, stored_values(plans.values, dtype))
    compute_part(stage, array_part(pixels, source.origin), array_part(out, anchor))
    if out is not target:
        from penstock.kernels.cpu.halves import round_to_halves

        round_to_halves(out, target)


class StoredValues(NamedTuple):
    """Sets of per-channel values in memory that the compiled core reads.

    Attributes:
        values: a ``CHANNEL_VALUES`` record per set, the kernel's argument.
        fills: for each set, the fill value of each channel, in the output's type.
        places: the address of each record of ``values``, int64.
        places_of_fills: the address of each array of ``fills``, int64.
        channels: the output's number of channels for each set, int64.
    """

    values: np.ndarray
    fills: list[np.ndarray]
    places: np.ndarray
    places_of_fills: np.ndarray
    channels: np.ndarray


def stored_values(values: Sequence[ChannelValues], target: np.dtype) -> StoredValues:
    """Return sets of per-channel values in memory for the core; ``target``: the element type of the output."""
    from penstock.kernels.cpu.normalize import CHANNEL_VALUES, converted_fill

    fills = [converted_fill(own.fill, target) for own in values]
    means, factors = (described([getattr(own, name) for own in values])["data"] for name in ("mean", "factor"))
    table = np.empty(len(values), CHANNEL_VALUES)
    table["mean"], table["factor"], table["shift"] = means, factors, [own.shift for own in values]
    places = address(table) + np.arange(len(values)) * table.itemsize
    channels = np.array([own.channels for own in values])
    return StoredValues(table, fills, places, described(fills)["data"].copy(), channels)


def store_records(
    plans: CmnPlans,
    kept: StoredAs,
    shapes_in: np.ndarray,
    source: np.dtype,
    target: np.dtype,
    stored: StoredValues,
) -> StageRecords:
    """Return the core's descriptors for storing a batch.

    Args:
        plans: the plans of the samples.
        kept: the order of dimensions: the workspace's state.
        shapes_in: the inputs' shapes, int64 of shape (samples, rank).
        source, target: the element types of inputs and outputs; not float16.
        stored: the result of :func:`stored_values` for ``plans.values``.
    """
    from penstock.kernels.cpu.normalize import normalizing_kernel

    count, rank = shapes_in.shape
    width, channel = kept.layout.index("W"), kept.layout.index("C")
    shapes = plans.regions.extents.copy()
    records = _alike(kept, rank, target.itemsize).repeat(count)
    placement = records["placement"]
    # If all samples share one set of values, an index array is not needed.
    which = 0 if len(stored.values) == 1 else plans.which
    shapes[:, channel] = stored.channels[which]
    placement["anchor"][:, :rank] = plans.regions.anchors
    placement["shape"][:, :rank], placement["shape_in"][:, :rank] = shapes, shapes_in
    placement["mirrored"][:, width] = plans.mirror
    placement["fill"], records["values"] = stored.places_of_fills[which], stored.places[which]
    return StageRecords(
        StageKind.STORE,
        records,
        shapes.take(kept.permutation, axis=1),
        target.itemsize,
        compute=normalizing_kernel(source, target),
        permutation=kept.permutation,
        keep=(stored, plans),
    )


@functools.lru_cache(maxsize=64)
def _alike(kept: StoredAs, rank: int, element_bytes: int) -> np.ndarray:
    """Return an array with one ``STORE`` record, in which the fields that all samples of one type share are set."""
    record = np.zeros(1, STORE)
    record["placement"]["channel_axis"], record["placement"]["element_bytes"] = kept.layout.index("C"), element_bytes
    record["permutation"][:, :rank] = kept.permutation
    record["image_axes"] = [kept.layout.index(letter) for letter in "HWC"]
    return record
