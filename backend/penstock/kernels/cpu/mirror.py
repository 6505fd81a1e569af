"""Mirrored copies."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.simd import copy_mirrored

# The number of pixels that are reversed at a time.
_LANES = 16


@kernel
def _mirror_single(source: np.ndarray, target: np.ndarray) -> None:
    """Set target[r, x] = source[r, -1 - x], for rows of at least ``_LANES`` elements."""
    rows, width = source.shape
    for r in range(rows):
        row, out = source[r], target[r]
        x = 0
        while x < width:
            # The last block overlaps the previous one, so that all blocks have the same size.
            x = min(x, width - _LANES)
            copy_mirrored(row, width - _LANES - x, out, x, _LANES, 1)
            x += _LANES


@kernel
def _mirror_triple(source: np.ndarray, target: np.ndarray) -> None:
    """Same as :func:`_mirror_single`, for rows of pixels of three elements."""
    rows, elements = source.shape
    width = elements // 3
    for r in range(rows):
        row, out = source[r], target[r]
        x = 0
        while x < width:
            x = min(x, width - _LANES)
            copy_mirrored(row, (width - _LANES - x) * 3, out, x * 3, _LANES, 3)
            x += _LANES


def mirror_axis(source: np.ndarray, axis: int, target: np.ndarray) -> None:
    """Set ``target[..., x, ...] = source[..., -1 - x, ...]``.

    Args:
        source: any array.
        axis: the dimension that x indexes.
        target: an array of the source's type and shape, contiguous.
    """
    width, inner = source.shape[axis], math.prod(source.shape[axis + 1 :])
    kernel = {1: _mirror_single, 3: _mirror_triple}.get(inner)
    if kernel is None or width < _LANES:
        np.copyto(target, np.flip(source, axis))
        return
    # Elements are copied as unsigned integers, so that one kernel serves all types of the same size.
    bits, shape = f"u{source.itemsize}", (-1, width * inner)
    rows = source.view(bits).reshape(shape)
    if rows.strides[1] != rows.itemsize:
        rows = np.ascontiguousarray(rows)
    kernel(rows, target.view(bits).reshape(shape))
