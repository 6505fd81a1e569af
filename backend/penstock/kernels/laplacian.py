"""Windows of discrete second derivatives: [1, -2, 1], widened by smoothing with [1, 2, 1] again and again."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

LARGEST_WINDOW = 31


@functools.cache
def smoothing_window(size: int) -> np.ndarray:
    """The binomial coefficients of order ``size - 1``, float32; ``size`` is odd."""
    window = np.ones(1)
    for _ in range(size // 2):
        window = np.convolve(window, [1.0, 2.0, 1.0])
    return window.astype(np.float32)


@functools.cache
def derivative_window(size: int) -> np.ndarray:
    """The second derivative of a smoothing window, float32; ``size`` is odd and at least 3."""
    return np.convolve(smoothing_window(size - 2).astype(np.float64), [1.0, -2.0, 1.0]).astype(np.float32)


def normalizing_scale(sizes: Sequence[int]) -> float:
    """The factor that makes a partial derivative, taken with windows of these sizes, one for a unit step of pixels."""
    return 2.0 ** (-sum(sizes) + len(sizes) + 2)
