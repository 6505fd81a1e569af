"""Pixel-wise arithmetic on CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.cpu.convert import converted

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def _scale_add(source, factor, offset, target, like):  # type: ignore[no-untyped-def]
    for i in range(source.size):
        target[i] = converted(np.float32(source[i]) * factor + offset, like)


@njit(**_OPTIONS)
def _transform(source, matrix, offset, target, like):  # type: ignore[no-untyped-def]
    """source (pixels, 3) -> target (pixels, n), matrix (n, 3)."""
    for p in range(source.shape[0]):
        r, g, b = np.float32(source[p, 0]), np.float32(source[p, 1]), np.float32(source[p, 2])
        for c in range(matrix.shape[0]):
            value = matrix[c, 0] * r + matrix[c, 1] * g + matrix[c, 2] * b + offset[c]
            target[p, c] = converted(value, like)


def scale_add(source: np.ndarray, factor: float, offset: float, target: np.ndarray) -> None:
    """target = source * factor + offset; both contiguous."""
    _scale_add(source.reshape(-1), np.float32(factor), np.float32(offset), target.reshape(-1), target.dtype.type(0))


def transform(source: np.ndarray, matrix: np.ndarray, offset: np.ndarray, target: np.ndarray) -> None:
    """Each pixel of three channels times ``matrix`` (n, 3) plus ``offset`` (n,); both arrays contiguous, channels last."""
    _transform(
        source.reshape(-1, 3),
        np.ascontiguousarray(matrix, np.float32),
        np.ascontiguousarray(offset, np.float32),
        target.reshape(-1, matrix.shape[0]),
        target.dtype.type(0),
    )
