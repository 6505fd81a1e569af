"""Resizing as a stage of a chain: with what comes before it, and with the normalization that follows it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from penstock.kernels.reference_filters import ReferenceTaps
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region
from penstock.operators.image._lookup_store import LookupStore
from penstock.operators.image._resample_plans import AnyTaps, ResamplePlan, Window
from penstock.operators.image._resampling import resample_and_normalize, resample_planes
from penstock.operators.image._stores import NormalizingStore
from penstock.schema import Sample
from penstock.schema.image_chain import Pixels, Placement, Sampling, Stage, Store
from penstock.schema.operator import Shape


@dataclass(frozen=True)
class Resampling(Sampling):
    """A sample of two spatial axes, resized.

    Attributes:
        plan: of the spatial axes.
        first: the first spatial dimension.
        shape_in: of the input.
        dtype: of the output.
    """

    plan: ResamplePlan
    first: int
    shape_in: Shape
    dtype: np.dtype

    @functools.cached_property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.plan.resized(self.shape_in, self.first)

    def covers(self, window: Region) -> Region:
        behind = self.first + 2
        return Region(
            (*window.anchor[:behind], *(0,) * len(self.shape[behind:])),
            (*window.extents[:behind], *self.shape[behind:]),
        )

    def reads(self, window: Region) -> Region:
        spans = [table.span for table in self._tables(window)]
        anchor, extents = list(window.anchor), list(window.extents)
        for axis, (start, stop) in enumerate(spans, self.first):
            anchor[axis], extents[axis] = start, stop - start
        return Region(tuple(anchor), tuple(extents))

    def _tables(self, window: Region) -> list[AnyTaps]:
        axes = range(self.first, self.first + 2)
        parts = [slice(window.anchor[axis], window.anchor[axis] + window.extents[axis]) for axis in axes]
        return [table.part(part) for table, part in zip(self.plan.tables, parts)]

    def narrowed(self, placement: Placement) -> Sampling | None:
        spatial = range(self.first, self.first + 2)
        whole = all(
            placement.anchor[axis] == 0 and placement.shape[axis] == extent and not placement.mirrored[axis]
            for axis, extent in enumerate(self.shape)
            if axis not in spatial
        )
        if not whole:
            return None
        windows = [
            Window(placement.anchor[axis], placement.anchor[axis] + placement.shape[axis], placement.mirrored[axis])
            for axis in spatial
        ]
        return replace(self, plan=self.plan.cropped(windows))

    def stored_by(self, store: Store) -> Stage | None:
        if isinstance(store, LookupStore):
            return self._looked_up_by(store)
        return self.normalized_by(store) if isinstance(store, NormalizingStore) else None

    def normalized_by(self, store: NormalizingStore) -> ResampledStore | None:
        """A stage that resizes and normalizes in one pass; None if there is none."""
        if not self.plan.normalizes or not store.is_of_images or self.first != len(self.shape) - 3:
            return None
        inside, place = store.place_of_image()
        windows = [
            Window(part.start, part.stop, mirrored)
            for part, mirrored in zip(inside[self.first :], (False, store.plan.mirror))
        ]
        return ResampledStore(self.plan.cropped(windows), self, store, (place[self.first], place[self.first + 1]))

    def _looked_up_by(self, store: LookupStore) -> ResampledPlanes | None:
        from penstock.kernels.cpu.fixed_point import BLOCK, kept_positions

        tables = self.plan.byte_tables
        if tables is None or len(self.shape) != 3 or not store.is_computed:
            return None
        (rows, columns), (_, width) = self.plan.part_read.extents, self.plan.extents
        if min(rows, columns, width) < BLOCK or any(kept_positions(table) is not None for table in tables):
            return None
        return ResampledPlanes(self, store, *tables)

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        read = self.reads(window)
        pixels, origin = rows_at(source, read, self.first)
        tables = [table.shifted(-start) for table, start in zip(self._tables(window), origin)]
        resample_planes(pixels, target, self.first, self.plan, tables)


def rows_at(source: Pixels, read: Region, first: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """A contiguous array of what is read, and the origin of its dimensions H and W, which begin at dimension
    ``first``."""
    behind = first + 2
    if not first and source.array.flags.c_contiguous and source.array.shape[behind:] == read.extents[behind:]:
        return source.array, source.origin[:2]
    outer = Region(
        (*read.anchor[:first], *source.origin[first:]),
        (*read.extents[:first], *source.array.shape[first:]),
    )
    pixels = source.part(outer)
    if pixels.flags.c_contiguous and pixels.shape[behind:] == read.extents[behind:]:
        return pixels, source.origin[first:behind]
    return source.contiguous(read), read.anchor[first:behind]


@dataclass(frozen=True)
class ResampledStore(Stage):
    """Images resized, cropped, mirrored, normalized and stored in one pass.

    Attributes:
        plan: of the part that is kept.
        resampling, store: the stages that it combines.
        place: the part's position in H and W of the output.
    """

    plan: ResamplePlan
    resampling: Resampling
    store: NormalizingStore
    place: tuple[slice, ...]

    is_whole = True

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.store.shape

    @property
    def is_inside(self) -> bool:
        """Whether nothing in the output is filled except added channels."""
        return self.store.is_inside

    def reads(self, window: Region) -> Region:
        first, shape, part = self.resampling.first, self.resampling.shape_in, self.plan.part_read
        outer = (0,) * first
        return Region((*outer, *part.anchor, 0), (*shape[:first], *part.extents, shape[-1]))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.kernels.cpu.resample import Normalization

        plan, place = self.store.plan, self.place
        pixels, origin = rows_at(source, self.reads(window), self.resampling.first)
        normalization = Normalization(
            plan.mean,
            plan.factor,
            plan.shift,
            self.store.is_planar,
            plan.fill,
            (place[0].start, place[1].start),
        )
        resample_and_normalize(pixels, target, self.plan, self.resampling.dtype, normalization, origin)


@dataclass(frozen=True)
class ResampledPlanes(Stage):
    """Images of bytes, resampled by integers, and stored as the planes of their values, which factors give, in one pass.

    Attributes:
        resampling, store: the stages that it combines.
        vertical, horizontal: the filters.
    """

    resampling: Resampling
    store: LookupStore
    vertical: ReferenceTaps
    horizontal: ReferenceTaps

    is_whole = True

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.store.shape

    def reads(self, window: Region) -> Region:
        return self._read

    @functools.cached_property
    def _read(self) -> Region:
        part = self.resampling.plan.part_read
        return Region((*part.anchor, 0), (*part.extents, self.resampling.shape_in[2]))

    @functools.cached_property
    def told_to_decoder(self) -> np.ndarray | None:  # type: ignore[override]
        from penstock.operators.image._decode_and_resample_cpu import columns_of

        return columns_of(self.vertical, self.horizontal, self.store.factors)

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.operators.image._rescale_normalize_cpu import resample_to_planes

        pixels, (top, left) = rows_at(source, self._read, 0)
        vertical, horizontal = (
            table.shifted(-start) for table, start in ((self.vertical, top), (self.horizontal, left))
        )
        between = _lines.array((self._read.extents[0], 3 * self.shape[2]), np.dtype(np.uint8))
        resample_to_planes(pixels, *vertical, *horizontal, self.store.factors, between, target)


_lines = ThreadBuffers()
"""Rows between the two passes."""
