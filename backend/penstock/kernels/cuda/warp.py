"""Affine warping on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, launch, locate, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Pointer, Repeated, cuda_type, records

# The number of pixels of a row per block, and of rows.
_TILE, _ROWS = 256, 16
# Numbers of channels for which kernels are specialized.
_USUAL_CHANNELS = (1, 3)
_NO_ROWS = [0.0] * 12


class _Warp(NamedTuple):
    """The descriptor of one image or volume.

    Attributes:
        matrix_at: address of the prepared matrix; 0: use ``matrix``.
        tiles: the number of tiles in a row.
        matrix: the rows x, y and z of [M|t].
    """

    source: Pointer
    target: Pointer
    matrix_at: Pointer
    depth: Int32
    height: Int32
    width: Int32
    channels: Int32
    out_depth: Int32
    out_height: Int32
    out_width: Int32
    tiles: Int32
    volumetric: Int32
    linear: Int32
    has_fill: Int32
    matrix: Annotated[Sequence[float], Repeated(np.float32, 12)]
    fill: Float


class _Given(NamedTuple):
    """A float32 matrix [M|t] from the user, and how to prepare it."""

    source: Pointer
    target: Pointer
    rank: Int32
    inverted: Int32


SOURCE = KernelSource(__file__, _Warp, _Given, TILE=_TILE, ROWS=_ROWS)


def warp_images(jobs: Sequence[tuple[OnGpu, np.ndarray | Located, OnGpu]], linear: bool, fill: float | None) -> None:
    """Warp images (H, W, C) or volumes (D, H, W, C): ``(source, matrix, target)``, in one launch.

    Args:
        jobs: the samples. Matrices, 2x3 or 3x4, map output to input coordinates; they are host arrays, or come from
            :func:`prepared_matrices`.
        linear: whether to interpolate; otherwise, the nearest pixel is taken.
        fill: the value of pixels outside the source; None: border pixels are repeated.
    """
    located = [(locate(source), matrix, locate(target)) for source, matrix, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [_entry(source, matrix, target, linear, fill) for source, matrix, target in located]
    channels = {target.shape[-1] for _, _, target in located}
    usual = channels.pop() if len(channels) == 1 and channels <= set(_USUAL_CHANNELS) else 0
    types = f"{cuda_type(located[0][0].dtype)}, {cuda_type(located[0][2].dtype)}, {usual}"
    counts = [
        blocks_for(target.shape[-2], _TILE) * blocks_for(math.prod(target.shape[:-2]), _ROWS)
        for _, _, target in located
    ]
    launch(SOURCE.kernel(f"warp<{types}>"), records(_Warp, entries), counts)


def _entry(source: Located, matrix: np.ndarray | Located, target: Located, linear: bool, fill: float | None) -> _Warp:
    depth, height, width, channels = (1, *source.shape)[-4:]
    out_depth, out_height, out_width = (1, *target.shape[:-1])[-3:]
    return _Warp(
        source=source.address,
        target=target.address,
        matrix_at=matrix.address if isinstance(matrix, Located) else 0,
        depth=depth,
        height=height,
        width=width,
        channels=channels,
        out_depth=out_depth,
        out_height=out_height,
        out_width=out_width,
        tiles=blocks_for(out_width, _TILE),
        volumetric=len(source.shape) == 4,
        linear=linear,
        has_fill=fill is not None,
        matrix=_NO_ROWS if isinstance(matrix, Located) else _rows(matrix),
        fill=0.0 if fill is None else fill,
    )


def prepared_matrices(matrices: Sequence[OnGpu], rank: int, inverted: bool) -> list[Located]:
    """Prepare float32 matrices on the GPU for :func:`warp_images`, in one launch.

    Args:
        matrices: [M|t], with ``rank`` rows.
        rank: 2 or 3.
        inverted: whether the matrices map input to output coordinates; if so, their inverses are prepared. The inverse of a singular matrix
            has infinities and NaN.
    """
    given = [locate(matrix) for matrix in matrices]
    prepared = scratch([(3, 4)] * len(given), np.float32)
    entries = [_Given(one.address, other.address, rank, inverted) for one, other in zip(given, prepared)]
    # Each matrix takes one thread; all threads are counted as the first sample's.
    counts = [blocks_for(len(given)), *[0] * (len(given) - 1)]
    launch(SOURCE.kernel("prepare"), records(_Given, entries), counts)
    return prepared


def _rows(matrix: np.ndarray) -> list[float]:
    """Return the matrix as the rows x, y and z, padded and flattened."""
    rows = np.zeros((3, 4), np.float32)
    rank = len(matrix)
    rows[:rank, :rank], rows[:rank, 3] = matrix[:, :-1], matrix[:, -1]
    flat: list[float] = rows.reshape(-1).tolist()
    return flat
