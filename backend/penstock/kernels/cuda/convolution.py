"""Convolution along one axis on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate, packed

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
    located = [(locate(source), axis, window, locate(target)) for source, axis, window, target in jobs]
    located = [job for job in located if job[3].size]
    if not located:
        return
    windows, places = packed([job[2] for job in located], np.float32)
    entries = [
        (
            source.address,
            target.address,
            math.prod(source.shape[:axis]),
            source.shape[axis],
            math.prod(source.shape[axis + 1 :]),
            place,
            len(window),
        )
        for (source, axis, window, target), place in zip(located, places)
    ]
    types = f"{cuda_type(located[0][0].dtype)}, {cuda_type(located[0][3].dtype)}"
    counts = [blocks_for(job[3].size) for job in located]
    launch(kernel("convolution", f"convolve<{types}>"), np.array(entries, _CONVOLUTION), counts, windows)
