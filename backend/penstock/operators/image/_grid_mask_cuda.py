"""Squares of a rotated grid, erased on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate
from penstock.operators.image._grids import Grid

_GRID = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("pixels", np.int64),
        ("width", np.int32),
        ("channels", np.int32),
        *((name, np.float32) for name in ("cosine", "sine", "shift_x", "shift_y", "ratio")),
        ("padding", np.int32),
    ],
    align=True,
)


def mask_grids(jobs: Sequence[tuple[Any, Grid, Any]]) -> None:
    """``(source, grid, target)`` for each image (H, W, C), in one launch."""
    located = [(locate(source), grid, locate(target)) for source, grid, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        (source.address, target.address, source.shape[0] * source.shape[1], *source.shape[1:], *grid, 0)
        for source, grid, target in located
    ]
    descriptors = np.array(entries, _GRID)
    counts = [blocks_for(pixels) for pixels in descriptors["pixels"].tolist()]
    launch(kernel(__file__, f"grid_mask<{cuda_type(located[0][0].dtype)}>"), descriptors, counts)
