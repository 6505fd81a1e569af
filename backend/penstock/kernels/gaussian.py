"""Windows of Gaussian filters."""

from __future__ import annotations

import functools
import math

import numpy as np


def diameter_of(sigma: float) -> int:
    """The odd window that holds three standard deviations on each side."""
    return 2 * math.ceil(3 * sigma) + 1


def sigma_of(diameter: int) -> float:
    """The standard deviation that suits a window."""
    return ((diameter - 1) / 2 - 1) * 0.3 + 0.8


@functools.lru_cache(maxsize=256)
def gaussian_window(sigma: float, diameter: int) -> np.ndarray:
    """The weights, which sum to 1, as float32."""
    distance = np.arange(diameter) - (diameter - 1) / 2
    weights = np.exp(-(distance**2) / (2 * sigma**2))
    return (weights / weights.sum()).astype(np.float32)
