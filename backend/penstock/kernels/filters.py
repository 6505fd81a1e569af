"""Resampling filters as tables for GPU kernels: for each output position, the first input position and the weights from there on.

Filters of distance d: linear ``1 - |d|``; cubic: Catmull-Rom spline (a = -0.5; Keys, "Cubic convolution interpolation
for digital image processing", 1981); Lanczos with three lobes (Duchon, "Lanczos filtering", 1979); Gaussian ``exp(-4
d^2)``. Cubic, Lanczos and Gaussian are tables with 32 entries per unit, linearly interpolated.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from penstock.data_types import DALIInterpType
from penstock.kernels.resize_shapes import AxisPlan

_PER_UNIT = 32
_NO_TABLE = np.empty(0)
# Passed to `fill_taps` instead of the first taps if these follow from the filter's radius.
_COMPUTED = np.empty(0, np.int64)
# The maximum radius of a filter, in samples; with larger ones, only the edges of images would matter.
MAX_SUPPORT = 65536.0
SUPPORT = {
    DALIInterpType.INTERP_LINEAR: 1.0,
    DALIInterpType.INTERP_TRIANGULAR: 1.0,
    DALIInterpType.INTERP_CUBIC: 2.0,
    DALIInterpType.INTERP_LANCZOS3: 3.0,
    DALIInterpType.INTERP_GAUSSIAN: 1.0,
}


class Taps(NamedTuple):
    """The taps of one axis.

    Attributes:
        starts: the first input position of each output position, int32 of shape (size_out,).
        weights: float32 of shape (size_out, taps); zero where an output position has fewer taps.
    """

    starts: np.ndarray
    weights: np.ndarray


def _cubic(d: np.ndarray) -> np.ndarray:
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return np.where(d < 1, near, np.where(d < 2, far, 0.0))


def _lanczos3(d: np.ndarray) -> np.ndarray:
    return np.where(d < 3, np.sinc(d) * np.sinc(d / 3), 0.0)


def _gaussian(d: np.ndarray) -> np.ndarray:
    return np.exp(-4 * d * d)


TABULATED = {
    DALIInterpType.INTERP_CUBIC: _cubic,
    DALIInterpType.INTERP_LANCZOS3: _lanczos3,
    DALIInterpType.INTERP_GAUSSIAN: _gaussian,
}


@functools.cache
def tabulated(kind: DALIInterpType) -> np.ndarray:
    """Return a filter's values at distances from 0 on, 32 values per unit, followed by two zeros."""
    count = int(SUPPORT[kind]) * _PER_UNIT
    values = TABULATED[kind](np.arange(count + 1) / _PER_UNIT).astype(np.float32).astype(np.float64)
    return np.append(values, (0.0, 0.0))


@functools.lru_cache(maxsize=256)
def nearest(plan: AxisPlan, last: bool, outputs: range | None = None) -> np.ndarray:
    """Return the input position nearest to each output position, int32.

    Args:
        plan: the axis.
        last: whether the axis is the width; along other axes, positions are rounded differently.
        outputs: the range of output positions; None: all.
    """
    # If a centre falls on the edge between two pixels, rounding decides; so this has to be single precision, in this order.
    start, half = np.float32(plan.start), np.float32(0.5)
    step = (np.float32(plan.end) - start) / np.float32(plan.size_out)
    if last:
        edges = start + (np.arange(plan.size_out, dtype=np.float32) + half) * step
    else:
        steps = np.full(plan.size_out, step)
        steps[0] = start + half * step
        edges = np.cumsum(steps, dtype=np.float32)
    positions = np.clip(np.floor(edges), 0, plan.size_in - 1).astype(np.int32)
    return positions if outputs is None else positions[outputs.start : outputs.stop]


@functools.lru_cache(maxsize=256)
def taps(plan: AxisPlan, kind: DALIInterpType, antialias: bool, outputs: range | None = None) -> Taps:
    """Return the taps of one axis; taps outside the input read its edge.

    Args:
        plan: the axis.
        kind: the filter; not INTERP_NN.
        antialias: whether to widen the filter when the axis shrinks.
        outputs: the range of output positions; None: all.
    """
    from penstock.kernels.cpu.taps import fill_taps

    outputs = range(plan.size_out) if outputs is None else outputs
    step = (plan.end - plan.start) / plan.size_out
    width = min(max(abs(step), 1.0) if antialias else 1.0, MAX_SUPPORT / SUPPORT[kind])
    radius = SUPPORT[kind] * width
    firsts, count = _COMPUTED, math.floor(2 * radius) + 1
    if kind == DALIInterpType.INTERP_GAUSSIAN:
        firsts, count = _gaussian_window(plan, width, outputs)
    table = tabulated(kind) if kind in TABULATED else _NO_TABLE
    starts = np.empty(len(outputs), np.int32)
    weights = np.empty((len(outputs), min(count, plan.size_in)), np.float32)
    used = fill_taps(
        float(plan.start),
        step,
        outputs.start,
        plan.size_in,
        width,
        radius,
        firsts,
        count,
        table,
        float(_PER_UNIT),
        starts,
        weights,
    )
    return Taps(starts, np.ascontiguousarray(weights[:, :used]))


def _gaussian_window(plan: AxisPlan, width: float, outputs: range) -> tuple[np.ndarray, int]:
    """Return the first tap of each output position, and the number of taps.

    The filter does not end in zeros. If there are taps at both of its ends, only one of them is used; rounding decides which, so this
    has to be single precision, in this order.
    """
    from penstock.kernels.cpu.tables import gaussian_window

    step = (plan.end - plan.start) / plan.size_out
    origin, single_step, count = gaussian_window(float(plan.start), step, width)
    starts = np.arange(outputs.start, outputs.stop).astype(np.float32) * np.float32(single_step) + np.float32(origin)
    return np.ceil(starts).astype(np.int64), int(count)
