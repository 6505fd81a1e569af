"""Correlation of images with arbitrary windows, on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, blocks_for, launch, packed
from penstock.kernels.cuda.structs import Float, Int32, Pointer, cuda_type, records
from penstock.kernels.cuda.tiles import Tiles, Tiling, tile_source, tiles_of, tiling_for


class _Correlation(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        window: address of the window on the GPU; 0: the window is in the table.
        fill: address of the fill value on the GPU; 0: the fill value is ``outside``.
        place: offset of the window in the table, in values.
    """

    tiles: Tiles
    window: Pointer
    fill: Pointer
    window_height: Int32
    window_width: Int32
    place: Int32
    outside: Float


SOURCE = tile_source(__file__, _Correlation)


@dataclass(slots=True)
class Correlation:
    """One sample to correlate with a window.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height; the next one is width.
        window: float32 of shape (height, width), on the host or on the GPU.
        anchor: the window's element (y, x) that is aligned with the output pixel.
        fill: value outside the image, for a constant border: a number, or a scalar of the source's type on the GPU.
    """

    source: Located
    target: Located
    axis: int
    window: np.ndarray | Located
    anchor: tuple[int, int]
    fill: float | Located = 0.0


def correlate_images(jobs: Sequence[Correlation], border: str) -> None:
    """Correlate all samples with their windows, and write the results to their targets; ``border``: one of ``BORDERS``."""
    tiles = [(job, _tiling(job)) for job in jobs if job.target.size]
    for tiled in (True, False):
        some = [(job, tiling) for job, tiling in tiles if (tiling is not None) == tiled]
        if some:
            _launch("correlate_tiles" if tiled else "correlate", some, border)


def _tiling(job: Correlation) -> Tiling | None:
    height, width = job.window.shape
    return tiling_for(image_view(job.target.shape, job.axis), (height, width), 1, height * (-(-width // 4) * 4), -1)


def _launch(name: str, jobs: Sequence[tuple[Correlation, Tiling | None]], border: str) -> None:
    table, places = packed([job.window for job, _ in jobs if not isinstance(job.window, Located)], np.float32)
    place, entries = iter(places), []
    for job, tiling in jobs:
        views = (image_view(job.source.shape, job.axis), image_view(job.target.shape, job.axis))
        window = job.window.address if isinstance(job.window, Located) else 0
        height, width = job.window.shape
        fill, outside = (job.fill.address, 0.0) if isinstance(job.fill, Located) else (0, job.fill)
        entries.append(
            _Correlation(
                tiles_of(job.source, job.target, *views, job.anchor, border, tiling),
                window,
                fill,
                height,
                width,
                0 if window else next(place),
                outside,
            )
        )
    types = f"{cuda_type(jobs[0][0].source.dtype)}, {cuda_type(jobs[0][0].target.dtype)}"
    counts = [tiling.blocks if tiling else blocks_for(job.target.size) for job, tiling in jobs]
    shared = max(tiling.shared if tiling else 0 for _, tiling in jobs)
    function = SOURCE.kernel(f"{name}<{types}>")
    launch(function, records(_Correlation, entries), counts, table, shared=shared)
