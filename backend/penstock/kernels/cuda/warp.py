"""Affine warping on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, cuda_type, kernel, launch, locate, scratch

_WARP = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("matrix_at", np.uint64),
        *(
            (name, np.int32)
            for name in ("depth", "height", "width", "channels", "out_depth", "out_height", "out_width")
        ),
        *((name, np.int32) for name in ("tiles", "volumetric", "linear", "has_fill")),
        ("matrix", np.float32, (3, 4)),
        ("fill", np.float32),
    ],
    align=True,
)
# Pixels of a row, and rows, that a block makes; as in warp.cu.
_TILE, _ROWS = 256, 16
# Numbers of channels for which the kernel is compiled on purpose.
_USUAL_CHANNELS = (1, 3)

_GIVEN = np.dtype([("source", np.uint64), ("target", np.uint64), ("rank", np.int32), ("inverted", np.int32)])
_NO_ROWS = np.zeros((3, 4), np.float32).tolist()


def warp_images(jobs: Sequence[tuple[Any, np.ndarray | Located, Any]], linear: bool, fill: float | None) -> None:
    """Warps images (H, W, C) or volumes (D, H, W, C): ``(source, matrix, target)``, in one launch.

    Args:
        jobs: the matrices, 2x3 or 3x4, map output to input coordinates; arrays in host memory, or of
            :func:`prepared_matrices`.
        linear: interpolate; else the nearest pixel is taken.
        fill: what lies outside of the source; None: the nearest pixel of its border.
    """
    located = [(locate(source), matrix, locate(target)) for source, matrix, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        (
            source.address,
            target.address,
            matrix.address if isinstance(matrix, Located) else 0,
            *(1, *source.shape)[-4:],
            *(1, *target.shape[:-1])[-3:],
            blocks_for(target.shape[-2], _TILE),
            len(source.shape) == 4,
            linear,
            fill is not None,
            _NO_ROWS if isinstance(matrix, Located) else _rows(matrix),
            0.0 if fill is None else fill,
        )
        for source, matrix, target in located
    ]
    channels = {target.shape[-1] for _, _, target in located}
    usual = channels.pop() if len(channels) == 1 and channels <= set(_USUAL_CHANNELS) else 0
    types = f"{cuda_type(located[0][0].dtype)}, {cuda_type(located[0][2].dtype)}, {usual}"
    counts = [
        blocks_for(target.shape[-2], _TILE) * blocks_for(math.prod(target.shape[:-2]), _ROWS)
        for _, _, target in located
    ]
    launch(kernel("warp", f"warp<{types}>"), np.array(entries, _WARP), counts)


def prepared_matrices(matrices: Sequence[Any], rank: int, inverted: bool) -> list[Located]:
    """Matrices of float32 on the GPU as :func:`warp_images` takes them, in one launch.

    Args:
        matrices: [M|t], of ``rank`` rows.
        rank: 2 or 3.
        inverted: they map input to output coordinates. What has no inverse gives infinities and NaN.
    """
    given = [locate(matrix) for matrix in matrices]
    prepared = scratch([(3, 4)] * len(given), np.float32)
    entries = [(one.address, other.address, rank, inverted) for one, other in zip(given, prepared)]
    # A thread for each matrix.
    counts = [blocks_for(len(given)), *[0] * (len(given) - 1)]
    launch(kernel("warp", "prepare"), np.array(entries, _GIVEN), counts)
    return prepared


def _rows(matrix: np.ndarray) -> list[list[float]]:
    """The matrix as rows [x, y, z, 1] for x, y and z."""
    rows = np.zeros((3, 4), np.float32)
    rank = len(matrix)
    rows[:rank, :rank], rows[:rank, 3] = matrix[:, :-1], matrix[:, -1]
    return rows.tolist()
