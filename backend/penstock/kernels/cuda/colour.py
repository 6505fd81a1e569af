"""Linear changes of colour on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, contiguous, cuda_type, kernel, launch
from penstock.types import from_numpy_dtype

_COLOUR = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("pixels", np.int64),
        ("channels_in", np.int32),
        ("channels_out", np.int32),
        ("matrix", np.float32, 12),
        ("offset", np.float32, 4),
    ],
    align=True,
)


def transform_colours(jobs: Sequence[tuple[Any, np.ndarray, np.ndarray, Any]]) -> None:
    """``(source, matrix, offset, target)`` for each sample, in one launch; a 1x1 matrix is a factor for all values alike."""
    jobs = [job for job in jobs if job[3].size]
    if not jobs:
        return
    sources = contiguous([job[0] for job in jobs])
    descriptors = np.zeros(len(jobs), _COLOUR)
    counts = []
    for entry, (_, matrix, offset, target), source in zip(descriptors, jobs, sources):
        entry["source"], entry["target"] = source.data.ptr, target.data.ptr
        entry["channels_out"], entry["channels_in"] = matrix.shape
        entry["pixels"] = source.size // matrix.shape[1]
        entry["matrix"][: matrix.size] = matrix.reshape(-1)
        entry["offset"][: len(offset)] = offset
        counts.append(blocks_for((int(entry["pixels"]),)))
    types = [cuda_type(from_numpy_dtype(array.dtype)) for array in (sources[0], jobs[0][3])]
    launch(kernel("colour", f"colour<{types[0]}, {types[1]}>"), descriptors, counts)
