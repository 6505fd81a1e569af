"""The parameters from which the GPU computes filter tables, for many images in one call."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from penstock.kernels.cpu.options import OPTIONS

# How the first tap of an output position is chosen.
NEAREST_COLUMN, NEAREST_ROW, WITHIN_RADIUS, FROM_ORIGIN = range(4)
_NEAREST, _GAUSSIAN = 0, 5


@njit(**OPTIONS)
def gaussian_window(start: float, step: float, width: float) -> tuple[np.float32, np.float32, int]:
    """The start of the window of output position 0, the step to the next one, and the number of taps."""
    deviation = np.float32(np.float64(np.float32(width) / np.float32(2)) / math.sqrt(2.0))
    extent = max(np.float32(1), np.float32(np.float32(4 * math.sqrt(2.0)) * deviation - np.float32(2.0**-23)))
    single_step = np.float32(step)
    origin = np.float32(start) + single_step / np.float32(2) - np.float32(0.5) - extent / np.float32(2)
    return np.float32(origin), single_step, math.ceil(extent)


@njit(**OPTIONS)
def fill_tables_plans(
    size_in: np.ndarray,
    size_out: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    kinds: np.ndarray,
    antialias: bool,
    last: bool,
    supports: np.ndarray,
    entries: np.ndarray,
    max_support: float,
    reals: np.ndarray,
    singles: np.ndarray,
    taps: np.ndarray,
    modes: np.ndarray,
) -> None:
    """Computes each image's filter.

    Args:
        size_in, size_out, start, end, kinds, antialias: see `resize_shapes.AxisPlans`.
        last: whether it is the width.
        supports, entries: for each kind of filter; those without entries are triangles.
        max_support: the widest radius.
        reals: output, of shape (4, images): start, step, width and radius.
        singles: output, of shape (2, images): origin and step in single precision.
        taps, modes: output: the number of taps, and how the first is chosen.
    """
    for i in range(len(size_in)):
        kind = kinds[i]
        support = supports[kind]
        step = (end[i] - start[i]) / size_out[i]
        width = max(abs(step), 1.0) if antialias else 1.0
        width = min(width, max_support / support)
        reals[0, i], reals[1, i], reals[2, i], reals[3, i] = start[i], step, width, support * width
        singles[0, i] = singles[1, i] = 0
        if kind == _NEAREST:
            modes[i], taps[i] = NEAREST_COLUMN if last else NEAREST_ROW, 1
            singles[0, i] = np.float32(start[i])
            singles[1, i] = (np.float32(end[i]) - np.float32(start[i])) / np.float32(size_out[i])
        elif kind == _GAUSSIAN:
            modes[i] = FROM_ORIGIN
            singles[0, i], singles[1, i], taps[i] = gaussian_window(start[i], step, width)
        else:
            modes[i] = WITHIN_RADIUS
            # For a triangle exactly two samples wide, the third tap is zero.
            taps[i] = 2 if entries[kind] == 0 and width == 1.0 else math.floor(2 * support * width) + 1
