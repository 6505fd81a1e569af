"""Affine warping on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, contiguous, cuda_type, kernel, launch
from penstock.types import from_numpy_dtype

_WARP = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *(
            (name, np.int32)
            for name in ("depth", "height", "width", "channels", "out_depth", "out_height", "out_width")
        ),
        *((name, np.int32) for name in ("volumetric", "linear", "has_fill")),
        ("matrix", np.float32, 12),
        ("fill", np.float32),
        ("padding", np.int32),
    ],
    align=True,
)


def warp_images(jobs: Sequence[tuple[Any, np.ndarray, Any]], linear: bool, fill: float | None) -> None:
    """Warps images (H, W, C) or volumes (D, H, W, C): ``(source, matrix, target)``, in one launch.

    Args:
        jobs: the matrices, 2x3 or 3x4, map output to input coordinates.
        linear: interpolate; else the nearest pixel is taken.
        fill: what lies outside of the source; None: the nearest pixel of its border.
    """
    jobs = [job for job in jobs if job[2].size]
    if not jobs:
        return
    sources = contiguous([job[0] for job in jobs])
    descriptors = np.zeros(len(jobs), _WARP)
    for entry, (_, matrix, target), source in zip(descriptors, jobs, sources):
        volumetric = source.ndim == 4
        entry["source"], entry["target"] = source.data.ptr, target.data.ptr
        entry["depth"], entry["height"], entry["width"], entry["channels"] = (1, *source.shape)[-4:]
        entry["out_depth"], entry["out_height"], entry["out_width"] = (1, *target.shape[:-1])[-3:]
        entry["volumetric"], entry["linear"], entry["has_fill"] = volumetric, linear, fill is not None
        rows = np.zeros((3, 4), np.float32)
        rank = len(matrix)
        rows[:rank, :rank], rows[:rank, 3] = matrix[:, :-1], matrix[:, -1]
        entry["matrix"] = rows.reshape(-1)
        entry["fill"] = 0 if fill is None else fill
    types = [cuda_type(from_numpy_dtype(array.dtype)) for array in (sources[0], jobs[0][2])]
    function = kernel("warp", f"warp<{types[0]}, {types[1]}>")
    launch(function, descriptors, [blocks_for(job[2].shape[:-1]) for job in jobs])
