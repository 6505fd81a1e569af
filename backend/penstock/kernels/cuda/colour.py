"""Linear colour transforms on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, Repeated, cuda_type, records

_MATRIX, _OFFSETS = 16, 4
_BLOCK_PIXELS = 2048


class _Colour(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        pixels: the number of pixels; with a 1x1 matrix, the number of values.
    """

    source: Pointer
    target: Pointer
    pixels: Int64
    matrix: Annotated[Sequence[float], Repeated(np.float32, _MATRIX)]
    offset: Annotated[Sequence[float], Repeated(np.float32, _OFFSETS)]


SOURCE = KernelSource(__file__, _Colour, BLOCK_PIXELS=_BLOCK_PIXELS)


def fits(matrix: np.ndarray) -> bool:
    """Return whether the kernel supports a matrix of shape (channels out, channels in)."""
    return max(matrix.shape) <= _OFFSETS and min(matrix.shape) > 0


def transform_colours(jobs: Sequence[tuple[OnGpu, np.ndarray, np.ndarray, OnGpu]]) -> None:
    """Transform the colours of each sample, ``(source, matrix, offset, target)``; a 1x1 matrix scales each value by itself.

    Matrices of each shape take one launch; all matrices of a batch usually have the same shape.
    """
    located = [(locate(source), matrix, offset, locate(target)) for source, matrix, offset, target in jobs]
    located = [job for job in located if job[3].size]
    for shape in sorted({matrix.shape for _, matrix, _, _ in located}):
        _transform([job for job in located if job[1].shape == shape])


def _transform(jobs: Sequence[tuple[Located, np.ndarray, np.ndarray, Located]]) -> None:
    entries = [
        _Colour(
            source.address,
            target.address,
            source.size // matrix.shape[1],
            _padded(matrix, _MATRIX),
            _padded(offset, _OFFSETS),
        )
        for source, matrix, offset, target in jobs
    ]
    descriptors = records(_Colour, entries)
    source, matrix, _, target = jobs[0]
    types = f"{cuda_type(source.dtype)}, {cuda_type(target.dtype)}, {matrix.shape[1]}, {matrix.shape[0]}"
    counts = [blocks_for(pixels, _BLOCK_PIXELS) for pixels in descriptors["pixels"].tolist()]
    launch(SOURCE.kernel(f"colour<{types}>"), descriptors, counts)


def _padded(values: np.ndarray, count: int) -> list[float]:
    given = np.asarray(values, np.float32).reshape(-1).tolist()
    return given + [0.0] * (count - len(given))
