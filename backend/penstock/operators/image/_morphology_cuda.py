"""The maximum or minimum under a rectangle, on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.kernels.axes import image_view
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located, blocks_for, launch, scratch
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, cuda_type, records
from penstock.kernels.cuda.tiles import Tiles, Tiling, tile_source, tiles_of, tiling_for


class _Rectangle(NamedTuple):
    """The descriptor of one sample that is computed in tiles.

    Attributes:
        neutral: a value that does not change the result: -inf for a maximum, inf for a minimum.
    """

    tiles: Tiles
    mask_height: Int32
    mask_width: Int32
    neutral: Float


class _Line(NamedTuple):
    """The descriptor of a pass along one axis of a sample, viewed as (outer, size, inner)."""

    source: Pointer
    target: Pointer
    outer: Int64
    size: Int64
    inner: Int64
    length: Int32
    anchor: Int32
    border: Int32


SOURCE = tile_source(__file__, _Rectangle, _Line)


@dataclass(slots=True)
class Morphology:
    """One sample to dilate or erode.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height; the next one is width.
        lengths: height and width of the rectangle.
        anchor: the rectangle's element (y, x) that is aligned with the output pixel.
    """

    source: Located
    target: Located
    axis: int
    lengths: tuple[int, int]
    anchor: tuple[int, int]


def take_extremes(extreme: str, jobs: Sequence[Morphology], border: str) -> None:
    """Set each pixel of the targets to the extreme value under the rectangle; a target has its source's data type.

    Args:
        extreme: ``Greatest`` or ``Least``.
        jobs: the samples.
        border: one of ``BORDERS``.
    """
    tiles = [(job, _tiling(job)) for job in jobs if job.target.size]
    tiled = [(job, tiling) for job, tiling in tiles if tiling]
    if tiled:
        _take_by_tiles(extreme, tiled, border)
    others = [job for job, tiling in tiles if not tiling]
    if others:
        _take_by_lines(extreme, others, border)


def _tiling(job: Morphology) -> Tiling | None:
    return tiling_for(image_view(job.target.shape, job.axis), job.lengths, 1, 0, 1)


def _take_by_tiles(extreme: str, jobs: Sequence[tuple[Morphology, Tiling]], border: str) -> None:
    neutral = -math.inf if extreme == "Greatest" else math.inf
    entries = [
        _Rectangle(
            tiles_of(job.source, job.target, tiling.view, tiling.view, job.anchor, border, tiling),
            *job.lengths,
            neutral,
        )
        for job, tiling in jobs
    ]
    function = SOURCE.kernel(f"extreme_tiles<{cuda_type(jobs[0][0].source.dtype)}, {extreme}>")
    shared = max(tiling.shared for _, tiling in jobs)
    launch(function, records(_Rectangle, entries), [tiling.blocks for _, tiling in jobs], shared=shared)


def _take_by_lines(extreme: str, jobs: Sequence[Morphology], border: str) -> None:
    """Launch once for each axis along which some rectangle is longer than one element, and at least once."""
    passes = [number for number in (0, 1) if any(job.lengths[number] > 1 for job in jobs)] or [0]
    sources = [job.source for job in jobs]
    for number in passes:
        last = number == passes[-1]
        targets = [job.target for job in jobs] if last else scratch([s.shape for s in sources], sources[0].dtype)
        entries = [
            _entry(source, target, job.axis + number, job.lengths[number], job.anchor[number], border)
            for job, source, target in zip(jobs, sources, targets)
        ]
        function = SOURCE.kernel(f"extreme<{cuda_type(sources[0].dtype)}, {extreme}>")
        launch(function, records(_Line, entries), [blocks_for(target.size) for target in targets])
        sources = targets


def _entry(source: Located, target: Located, axis: int, length: int, anchor: int, border: str) -> _Line:
    shape = source.shape
    extents = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return _Line(source.address, target.address, *extents, length, anchor, BORDERS.index(border))
