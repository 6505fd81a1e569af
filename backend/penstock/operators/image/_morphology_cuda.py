"""The extreme of the values under a rectangle, on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located, blocks_for, cuda_type, kernel, launch, locate, scratch
from penstock.kernels.cuda.tiles import TILES, Tiling, tile_fields, tiling_for

_RECTANGLE = np.dtype(
    [
        *TILES,
        ("mask_height", np.int32),
        ("mask_width", np.int32),
        ("neutral", np.float32),
        ("padding2", np.int32),
    ],
    align=True,
)
_LINE = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64) for name in ("outer", "size", "inner")),
        *((name, np.int32) for name in ("length", "anchor", "border", "padding")),
    ],
    align=True,
)


@dataclass(slots=True)
class Morphology:
    """What happens to one sample.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height, which that of width follows.
        lengths, anchor: of the rectangle, (height, width), and which of its elements lies on the output's position.
    """

    source: Any
    target: Any
    axis: int
    lengths: tuple[int, int]
    anchor: tuple[int, int]


def take_extremes(extreme: str, jobs: Sequence[Morphology], border: str) -> None:
    """Fills all targets, of the sources' type.

    Args:
        extreme: ``Greatest`` or ``Least``.
        jobs: the samples.
        border: one of ``BORDERS``.
    """
    located = [replace(job, source=locate(job.source), target=locate(job.target)) for job in jobs]
    tiles = [(job, _tiling(job)) for job in located if job.target.size]
    tiled = [(job, tiling) for job, tiling in tiles if tiling]
    if tiled:
        _take_by_tiles(extreme, tiled, border)
    others = [job for job, tiling in tiles if not tiling]
    if others:
        _take_by_lines(extreme, others, border)


def _tiling(job: Morphology) -> Tiling | None:
    return tiling_for(image_view(job.target.shape, job.axis), job.lengths, 1, 0, 1)


def _take_by_tiles(extreme: str, jobs: Sequence[tuple[Morphology, Tiling]], border: str) -> None:
    neutral = -np.inf if extreme == "Greatest" else np.inf
    entries = [
        (
            *tile_fields(job.source, job.target, tiling.view, tiling.view, job.anchor, border, tiling),
            *(*job.lengths, neutral, 0),
        )
        for job, tiling in jobs
    ]
    function = kernel(__file__, f"extreme_tiles<{cuda_type(jobs[0][0].source.dtype)}, {extreme}>")
    shared = max(tiling.shared for _, tiling in jobs)
    launch(function, np.array(entries, _RECTANGLE), [tiling.blocks for _, tiling in jobs], shared=shared)


def _take_by_lines(extreme: str, jobs: Sequence[Morphology], border: str) -> None:
    """In a launch for each axis along which a rectangle is not a single element."""
    passes = [number for number in (0, 1) if any(job.lengths[number] > 1 for job in jobs)] or [0]
    sources = [job.source for job in jobs]
    for number in passes:
        last = number == passes[-1]
        targets = [job.target for job in jobs] if last else scratch([s.shape for s in sources], sources[0].dtype)
        entries = [
            _entry(source, target, job.axis + number, job.lengths[number], job.anchor[number], border)
            for job, source, target in zip(jobs, sources, targets)
        ]
        function = kernel(__file__, f"extreme<{cuda_type(sources[0].dtype)}, {extreme}>")
        launch(function, np.array(entries, _LINE), [blocks_for(target.size) for target in targets])
        sources = targets


def _entry(source: Located, target: Located, axis: int, length: int, anchor: int, border: str) -> tuple[Any, ...]:
    shape = source.shape
    extents = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return (source.address, target.address, *extents, length, anchor, BORDERS.index(border), 0)
