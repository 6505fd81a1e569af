"""Perspective warping on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, launch, locate, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, Repeated, cuda_type, records

_MAX_FILLS = 4
# Number of pixels per block.
_BLOCK_PIXELS = 1024
_NO_MATRIX = np.zeros(9)


class _Perspective(NamedTuple):
    """The descriptor of one image.

    Attributes:
        matrix_at: address of the prepared matrix; 0: use ``matrix``.
        matrix: a matrix that maps the centres of output pixels to input coordinates relative to the first pixel's centre.
        pixels: number of pixels of the target.
        fill: the value of each element of a pixel beyond a constant border.
    """

    source: Pointer
    target: Pointer
    matrix_at: Pointer
    matrix: Annotated[np.ndarray, Repeated(np.float64, 9)]
    pixels: Int64
    height: Int32
    width: Int32
    inner: Int32
    out_height: Int32
    out_width: Int32
    taps: Int32
    coarse: Int32
    border: Int32
    fill: Annotated[np.ndarray, Repeated(np.float32, _MAX_FILLS)]


class _Given(NamedTuple):
    """The descriptor of a float32 matrix from the user, and of how to prepare it; see :func:`prepared_matrices`."""

    source: Pointer
    target: Pointer
    to_centres: Int32
    inverted: Int32


SOURCE = KernelSource(__file__, _Perspective, _Given, BLOCK_PIXELS=_BLOCK_PIXELS)


@dataclass(slots=True)
class Perspective:
    """How to warp one image.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height; the next one is width.
        matrix: a 3x3 matrix that maps the centres of output pixels to input coordinates relative to the first pixel's
            centre: a host array, or a result of :func:`prepared_matrices`.
        taps: number of taps along each axis: 1 (the nearest pixel), 2 (linear) or 4 (cubic).
        coarse: whether to round subpixel positions to multiples of 1/32.
        fill: the value of each element of a pixel beyond a constant border.
    """

    source: OnGpu
    target: OnGpu
    axis: int
    matrix: np.ndarray | Located
    taps: int
    coarse: bool
    fill: np.ndarray


def warp_images(jobs: Sequence[Perspective], border: str) -> None:
    """Warp all images in one launch; targets have the data types of their sources. ``border``: one of ``BORDERS``."""
    located = [(job, locate(job.source), locate(job.target)) for job in jobs]
    located = [item for item in located if item[2].size]
    if not located:
        return
    entries = []
    for job, source, target in located:
        out_height, out_width = target.shape[job.axis : job.axis + 2]
        height, width, inner = image_view(source.shape, job.axis)[1:]
        fill = np.zeros(_MAX_FILLS, np.float32)
        fill[: len(job.fill)] = job.fill
        entries.append(
            _Perspective(
                source.address,
                target.address,
                job.matrix.address if isinstance(job.matrix, Located) else 0,
                _NO_MATRIX if isinstance(job.matrix, Located) else job.matrix.reshape(9),
                target.size // inner,
                height,
                width,
                inner,
                out_height,
                out_width,
                job.taps,
                job.coarse,
                BORDERS.index(border),
                fill,
            )
        )
    function = SOURCE.kernel(f"warp_perspective<{cuda_type(located[0][1].dtype)}>")
    counts = [blocks_for(entry.pixels, _BLOCK_PIXELS) for entry in entries]
    launch(function, records(_Perspective, entries), counts)


def prepared_matrices(matrices: Sequence[OnGpu], to_centres: bool, inverted: bool) -> list[Located]:
    """Prepare float32 matrices on the GPU for :class:`Perspective`, in one launch.

    Args:
        matrices: 3x3 matrices on the GPU.
        to_centres: whether matrices are relative to the first pixel's corner, and must be made relative to its centre.
        inverted: whether matrices must be inverted, because they map input to output coordinates.
    """
    located = [locate(matrix) for matrix in matrices]
    prepared = scratch([(3, 3)] * len(located), np.float64)
    entries = [_Given(one.address, other.address, to_centres, inverted) for one, other in zip(located, prepared)]
    # A single grid has one thread for each matrix, so only the first descriptor gets blocks.
    counts = [blocks_for(len(located)), *[0] * (len(located) - 1)]
    launch(SOURCE.kernel("prepare"), records(_Given, entries), counts)
    return prepared
