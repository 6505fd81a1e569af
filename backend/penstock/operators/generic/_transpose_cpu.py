"""Transposed copies, in particular between channels first and channels last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.simd import copy_joined, copy_split

# Pixels copied at a time.
_LANES = 16


@kernel
def _split(source: np.ndarray, outer: int, pixels: int, stride: int, target: np.ndarray) -> None:
    """Copy source (outer, pixels, 3) to target (outer, 3, pixels), both flat, of at least ``_LANES`` pixels.

    ``stride`` is the distance between planes of the target: ``pixels``, or more if the target is a slice of an image.
    """
    for begin in range(0, outer * pixels * 3, pixels * 3):
        p = 0
        while p < pixels:
            # The last block overlaps the previous one, so that all blocks have the same size.
            p = min(p, pixels - _LANES)
            copy_split(source, begin + p * 3, target, begin + p, stride, _LANES)
            p += _LANES


@kernel
def _join(source: np.ndarray, outer: int, pixels: int, stride: int, target: np.ndarray) -> None:
    """Copy source (outer, 3, pixels) to target (outer, pixels, 3), both flat, of at least ``_LANES`` pixels.

    ``stride`` is the distance between planes of the source: ``pixels``.
    """
    for begin in range(0, outer * pixels * 3, pixels * 3):
        p = 0
        while p < pixels:
            p = min(p, pixels - _LANES)
            copy_joined(source, begin + p, stride, target, begin + p * 3, _LANES)
            p += _LANES


def transpose(source: np.ndarray, permutation: Sequence[int], target: np.ndarray) -> None:
    """Set ``target[...] = source.transpose(permutation)``, both of one type; fastest if both are contiguous."""
    kernel, outer = _kernel_for(source.shape, list(permutation))
    pixels = source.size // max(3 * outer, 1)
    flat = target.reshape(-1) if target.flags.c_contiguous else _rows_of_planes(target, kernel, outer)
    if kernel is None or flat is None or pixels < _LANES or not source.flags.c_contiguous:
        _copy_transposed(source, list(permutation), target)
        return
    # Elements are copied as opaque integers, so types of the same size share a kernel.
    bits = f"u{source.itemsize}"
    stride = pixels if target.flags.c_contiguous else target.strides[0] // target.itemsize
    kernel(source.reshape(-1).view(bits), outer, pixels, stride, flat.view(bits))


def _copy_transposed(source: np.ndarray, permutation: list[int], target: np.ndarray) -> None:
    """Copy with NumPy, without inner loops over a few channels where those stay the last dimension."""
    last = source.ndim - 1
    if permutation[last:] != [last] or source.shape[last] > _LANES // 2 or permutation == list(range(source.ndim)):
        np.copyto(target, source.transpose(permutation))
        return
    for channel in range(source.shape[last]):
        np.copyto(target[..., channel], source[..., channel].transpose(permutation[:-1]))


def _rows_of_planes(target: np.ndarray, kernel: object, outer: int) -> np.ndarray | None:
    """Return rows of the three planes of one image as one flat array, gaps included; None for any other array."""
    if kernel is not _split or outer != 1 or not target.size or not target[0].flags.c_contiguous:
        return None
    size = (2 * target.strides[0] + target[0].nbytes) // target.itemsize
    return np.lib.stride_tricks.as_strided(target, (size,), (target.itemsize,))


def _kernel_for(shape: tuple[int, ...], permutation: list[int]) -> tuple[Any, int]:
    """Return the three-channel kernel for a permutation, if there is one, and the number of images."""
    ndim = len(shape)
    for axis in range(ndim - 1):
        others = [other for other in range(ndim) if other != axis]
        if shape[-1] == 3 and permutation == [*range(axis), ndim - 1, *range(axis, ndim - 1)]:
            return _split, math.prod(shape[:axis])
        if shape[axis] == 3 and permutation == [*others, axis]:
            return _join, math.prod(shape[:axis])
    return None, 0
