"""Convolution along one axis on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, contiguous, cuda_type, kernel, launch, packed, upload
from penstock.types import from_numpy_dtype

_CONVOLUTION = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64) for name in ("outer", "size", "inner")),
        ("window", np.int32),
        ("diameter", np.int32),
    ],
    align=True,
)


def convolve_axes(jobs: Sequence[tuple[Any, int, np.ndarray, Any]]) -> None:
    """``(source, axis, window, target)`` for each sample, in one launch; windows are odd."""
    jobs = [job for job in jobs if job[3].size]
    if not jobs:
        return
    sources = contiguous([job[0] for job in jobs])
    windows, places = packed([job[2] for job in jobs], np.float32)
    descriptors = np.zeros(len(jobs), _CONVOLUTION)
    for entry, (_, axis, window, target), source, place in zip(descriptors, jobs, sources, places):
        entry["source"], entry["target"] = source.data.ptr, target.data.ptr
        entry["outer"], entry["size"] = math.prod(source.shape[:axis]), source.shape[axis]
        entry["inner"] = math.prod(source.shape[axis + 1 :])
        entry["window"], entry["diameter"] = place, len(window)
    types = [cuda_type(from_numpy_dtype(array.dtype)) for array in (sources[0], jobs[0][3])]
    function = kernel("convolution", f"convolve<{types[0]}, {types[1]}>")
    launch(function, descriptors, [blocks_for(job[3].shape) for job in jobs], upload(windows))
