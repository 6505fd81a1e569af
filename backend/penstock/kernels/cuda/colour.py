"""Linear changes of colour on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate

_MATRIX, _OFFSETS = 12, 4
_COLOUR = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("pixels", np.int64),
        ("channels_in", np.int32),
        ("channels_out", np.int32),
        ("matrix", np.float32, _MATRIX),
        ("offset", np.float32, _OFFSETS),
    ],
    align=True,
)


def fits(matrix: np.ndarray) -> bool:
    """Whether the kernel takes a matrix (channels out, channels in)."""
    return matrix.size <= _MATRIX and max(matrix.shape) <= _OFFSETS


def transform_colours(jobs: Sequence[tuple[Any, np.ndarray, np.ndarray, Any]]) -> None:
    """``(source, matrix, offset, target)`` for each sample, in one launch; a 1x1 matrix is a factor for all values alike."""
    located = [(locate(source), matrix, offset, locate(target)) for source, matrix, offset, target in jobs]
    located = [job for job in located if job[3].size]
    if not located:
        return
    entries = [
        (
            source.address,
            target.address,
            source.size // matrix.shape[1],
            matrix.shape[1],
            matrix.shape[0],
            _padded(matrix, _MATRIX),
            _padded(offset, _OFFSETS),
        )
        for source, matrix, offset, target in located
    ]
    descriptors = np.array(entries, _COLOUR)
    types = f"{cuda_type(located[0][0].dtype)}, {cuda_type(located[0][3].dtype)}"
    counts = [blocks_for(pixels) for pixels in descriptors["pixels"].tolist()]
    launch(kernel("colour", f"colour<{types}>"), descriptors, counts)


def _padded(values: np.ndarray, count: int) -> list[float]:
    given = np.asarray(values, np.float32).reshape(-1).tolist()
    return given + [0.0] * (count - len(given))
