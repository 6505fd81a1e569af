"""The median under a rectangular window, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, blocks_for, cuda_type, kernel, launch, locate
from penstock.kernels.cuda.tiles import TILES, Tiling, tile_fields, tiling_for

# Windows of these sides are kept in registers.
_SMALL = (3, 5, 7)
_MEDIAN = np.dtype([*TILES, ("window_height", np.int32), ("window_width", np.int32)], align=True)
_Job = tuple[Located, int, tuple[int, int], Located]


def median_filter(jobs: Sequence[tuple[Any, int, tuple[int, int], Any]]) -> None:
    """``(source, axis, window, target)`` for each sample.

    ``axis`` is the dimension of height, which that of width follows; windows are (height, width), odd.
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
        entries.append(
            (*tile_fields(source, target, view, view, (height // 2, width // 2), "replicate", tiling), height, width)
        )
    dtype = cuda_type(jobs[0][0][0].dtype)
    if jobs[0][1] is None:
        launch(
            kernel(__file__, f"median<{dtype}>"),
            np.array(entries, _MEDIAN),
            [blocks_for(target.size) for (*_, target), _ in jobs],
        )
        return
    sides = {side for (_, _, window, _), _ in jobs for side in window}
    side = next((side for side in _SMALL if sides == {side}), 0)
    launch(
        kernel(__file__, f"median_tiles<{dtype}, {side}>"),
        np.array(entries, _MEDIAN),
        [tiling.blocks for _, tiling in jobs if tiling],
        shared=max(tiling.shared for _, tiling in jobs if tiling),
    )
