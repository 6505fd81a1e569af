"""Chain stages that resize with another library's arithmetic, fused with the store after them where possible."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from penstock.kernels.reference_filters import ReferenceTaps
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region
from penstock.operators.image._lookup_store import LookupStore
from penstock.operators.image._reference_plans import ReferencePlan
from penstock.operators.image._resample_plans import Window, planes_of
from penstock.operators.image._resample_stages import Resized
from penstock.schema import Sample
from penstock.schema.image_chain import Pixels, Placement, Sampling, Stage, Store
from penstock.schema.operator import Shape


@dataclass(frozen=True)
class ReferenceResampling(Resized):
    """Resizes a sample with tables of integer weights."""

    plan: ReferencePlan
    first: int
    shape_in: Shape

    def _tables(self, window: Region) -> list[ReferenceTaps]:
        axes = range(self.first, self.first + 2)
        parts = [slice(window.anchor[axis], window.anchor[axis] + window.extents[axis]) for axis in axes]
        return [table.part(part) for table, part in zip(self.plan.tables, parts)]

    def _spans(self, window: Region) -> list[tuple[int, int]]:
        return [table.span for table in self._tables(window)]

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
        from penstock.kernels.cpu.fixed_point import BLOCK, kept_positions

        tables = self.plan.byte_tables
        if not isinstance(store, LookupStore) or tables is None or len(self.shape) != 3 or not store.is_computed:
            return None
        (rows, columns), (_, width) = self.plan.part_read.extents, self.plan.extents
        if min(rows, columns, width) < BLOCK or any(kept_positions(table) is not None for table in tables):
            return None
        return ResampledPlanes(self, store, *tables)

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        pixels, origin = rows_at(source, self.reads(window), self.first)
        tables = [table.shifted(-start) for table, start in zip(self._tables(window), origin)]
        for plane, result in zip(planes_of(pixels, self.first), planes_of(target, self.first)):
            self.plan.resample(plane, result, tables)


def rows_at(source: Pixels, read: Region, first: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return a contiguous array that contains ``read``, and the array's origin along H and W; H is dimension ``first``."""
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
class ResampledPlanes(Stage):
    """Resamples uint8 images with integer weights, and stores them as planes of normalized values, in one pass.

    Attributes:
        resampling, store: the two stages that this stage replaces.
        vertical, horizontal: the filters.
    """

    resampling: ReferenceResampling
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
    def decoding_parameters(self) -> np.ndarray | None:  # type: ignore[override]
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
"""Buffers for rows between the two passes."""
