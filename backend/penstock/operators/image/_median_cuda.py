"""The median under a rectangular window, on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.structs import Int32, cuda_type, records
from penstock.kernels.cuda.tiles import Tiles, Tiling, tile_source, tiles_of, tiling_for

# Sides of square windows that fit into registers.
_SMALL = (3, 5, 7)


class _Median(NamedTuple):
    """The descriptor of one sample."""

    tiles: Tiles
    window_height: Int32
    window_width: Int32


SOURCE = tile_source(__file__, _Median)
_Job = tuple[Located, int, tuple[int, int], Located]


def median_filter(jobs: Sequence[tuple[OnGpu, int, tuple[int, int], OnGpu]]) -> None:
    """Write the medians of each ``(source, axis, window, target)`` to its target.

    ``axis`` is the dimension of height, and the next one is width; ``window`` is (height, width), both odd.
    """
    located = [(locate(source), axis, window, locate(target)) for source, axis, window, target in jobs]
    tiles = [(job, _tiling(job)) for job in located if job[3].size]
    for tiled in (True, False):
        some = [(job, tiling) for job, tiling in tiles if (tiling is not None) == tiled]
        if some:
            _launch(some)


def _tiling(job: _Job) -> Tiling | None:
    _, axis, window, target = job
    return tiling_for(image_view(target.shape, axis), tuple(window), 1, 0, -1)


def _launch(jobs: Sequence[tuple[_Job, Tiling | None]]) -> None:
    entries = []
    for (source, axis, (height, width), target), tiling in jobs:
        view = image_view(source.shape, axis)
        tiles = tiles_of(source, target, view, view, (height // 2, width // 2), "replicate", tiling)
        entries.append(_Median(tiles, height, width))
    dtype = cuda_type(jobs[0][0][0].dtype)
    if jobs[0][1] is None:
        launch(
            SOURCE.kernel(f"median<{dtype}>"),
            records(_Median, entries),
            [blocks_for(target.size) for (*_, target), _ in jobs],
        )
        return
    sides = {side for (_, _, window, _), _ in jobs for side in window}
    side = next((side for side in _SMALL if sides == {side}), 0)
    launch(
        SOURCE.kernel(f"median_tiles<{dtype}, {side}>"),
        records(_Median, entries),
        [tiling.blocks for _, tiling in jobs if tiling],
        shared=max(tiling.shared for _, tiling in jobs if tiling),
    )
