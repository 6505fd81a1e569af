"""Helpers for pasting masks into images, on the CPU and on the GPU."""

from __future__ import annotations

import numpy as np

MAX_COORDINATE = 2.0**24
"""The largest coordinate that is accepted, far beyond any image."""


def factors_of(shapes: np.ndarray) -> np.ndarray:
    """Return the factors by which boxes grow, in x and y, if their masks get a border of one pixel: float32 of shape (samples, 2).

    Args:
        shapes: number, height and width of each sample's masks, int64 of shape (samples, 3).
    """
    extents = np.maximum(shapes[:, :0:-1], 1)
    return ((extents + 2) / extents).astype(np.float32)
