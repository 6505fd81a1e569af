"""Zeroing the squares of grids on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, cuda_type, records
from penstock.operators.image._grids import Grid


class _Grid(NamedTuple):
    """The descriptor of one image and its grid; see :class:`Grid`."""

    source: Pointer
    target: Pointer
    pixels: Int64
    width: Int32
    channels: Int32
    cosine: Float
    sine: Float
    shift_x: Float
    shift_y: Float
    ratio: Float


SOURCE = KernelSource(__file__, _Grid)


def mask_grids(jobs: Sequence[tuple[OnGpu, Grid, OnGpu]]) -> None:
    """Zero the squares of all ``(source, grid, target)`` in one launch; sources and targets are images (H, W, C)."""
    located = [(locate(source), grid, locate(target)) for source, grid, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        _Grid(
            source.address,
            target.address,
            math.prod(source.shape[:2]),
            source.shape[1],
            source.shape[2],
            *map(float, grid),
        )
        for source, grid, target in located
    ]
    counts = [blocks_for(entry.pixels) for entry in entries]
    launch(SOURCE.kernel(f"grid_mask<{cuda_type(located[0][0].dtype)}>"), records(_Grid, entries), counts)
