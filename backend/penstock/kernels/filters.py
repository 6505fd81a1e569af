"""Resampling filters as tables: for each output position, the first input position and the weights from there on.

Filters of distance d: linear ``1 - |d|``; cubic: Catmull and Rom's spline (a = -0.5; Keys, "Cubic convolution interpolation
for digital image processing", 1981); Lanczos with three lobes (Duchon, "Lanczos filtering", 1979); Gaussian
``exp(-4 d^2)``. Cubic, Lanczos and Gaussian are read from tables of 32 entries a unit, linearly interpolated.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from penstock.kernels.resize_shapes import AxisPlan
from penstock.types import DALIInterpType

_PER_UNIT = 32
# The widest filters have this radius, in samples: beyond, nothing but the edges would tell.
_MOST_SUPPORT = 65536.0
_SUPPORT = {
    DALIInterpType.INTERP_LINEAR: 1.0,
    DALIInterpType.INTERP_TRIANGULAR: 1.0,
    DALIInterpType.INTERP_CUBIC: 2.0,
    DALIInterpType.INTERP_LANCZOS3: 3.0,
    DALIInterpType.INTERP_GAUSSIAN: 1.0,
}


class Taps(NamedTuple):
    """The filter of one axis.

    Attributes:
        starts: first input position of each output position, int32 of shape (size_out,).
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


_TABULATED = {
    DALIInterpType.INTERP_CUBIC: _cubic,
    DALIInterpType.INTERP_LANCZOS3: _lanczos3,
    DALIInterpType.INTERP_GAUSSIAN: _gaussian,
}


@functools.cache
def _table(kind: DALIInterpType) -> np.ndarray:
    count = int(_SUPPORT[kind]) * _PER_UNIT
    values = _TABULATED[kind](np.arange(count + 1) / _PER_UNIT).astype(np.float32).astype(np.float64)
    return np.append(values, (0.0, 0.0))


def _values(kind: DALIInterpType, distance: np.ndarray) -> np.ndarray:
    distance = np.abs(distance)
    if kind not in _TABULATED:
        return np.maximum(1 - distance, 0.0)
    table = _table(kind)
    position = np.minimum(distance * _PER_UNIT, len(table) - 1)
    index = np.minimum(position.astype(np.int64), len(table) - 2)
    return table[index] + (position - index) * (table[index + 1] - table[index])


def centres(plan: AxisPlan, outputs: range | None = None) -> np.ndarray:
    """The input position, in pixel centres, of the middle of each output position, or of those named."""
    outputs = range(plan.size_out) if outputs is None else outputs
    step = (plan.end - plan.start) / plan.size_out
    return (np.arange(outputs.start, outputs.stop) + 0.5) * step + plan.start - 0.5


@functools.lru_cache(maxsize=256)
def nearest(plan: AxisPlan, last: bool, outputs: range | None = None) -> np.ndarray:
    """The nearest input position of each output position, or of those named; int32.

    Args:
        plan: the axis.
        last: it is the width; those above it are rounded in another way.
        outputs: the output positions that are wanted; None: all.
    """
    # In single precision, in these orders: where a centre falls on an edge between pixels, that decides.
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
    """The filter for one axis; what lies outside of the input is read from its edge.

    Args:
        plan: the axis.
        kind: of filter; not INTERP_NN.
        antialias: widen the filter when the axis shrinks.
        outputs: the output positions that are wanted; None: all.
    """
    centre = centres(plan, outputs)
    step = abs(plan.end - plan.start) / plan.size_out
    width = min(max(step, 1.0) if antialias else 1.0, _MOST_SUPPORT / _SUPPORT[kind])
    radius = _SUPPORT[kind] * width
    if kind == DALIInterpType.INTERP_GAUSSIAN:
        first, count = _gaussian_window(plan, width, outputs)
    else:
        first, count = np.ceil(centre - radius).astype(np.int64), math.floor(2 * radius) + 1
    positions = first[:, None] + np.arange(count)
    weights = _values(kind, (positions - centre[:, None]) / width)
    weights /= weights.sum(axis=1, keepdims=True)
    return _folded(positions, weights, plan.size_in)


def _gaussian_window(plan: AxisPlan, width: float, outputs: range | None) -> tuple[np.ndarray, int]:
    """The first tap of each output position, and how many there are.

    The filter does not end in zeros, and of two taps right at its ends one is taken: rounding in single precision, in
    this order, decides which.
    """
    single = np.float32
    deviation = single(float(single(width) / 2) / math.sqrt(2))
    extent = max(single(1), single(4 * math.sqrt(2)) * deviation - single(2.0**-23))
    step = single((plan.end - plan.start) / plan.size_out)
    origin = single(plan.start) + step / 2 - single(0.5) - extent / 2
    outputs = range(plan.size_out) if outputs is None else outputs
    starts = np.arange(outputs.start, outputs.stop).astype(np.float32) * step + origin
    return np.ceil(starts).astype(np.int64), math.ceil(extent)


def _folded(positions: np.ndarray, weights: np.ndarray, size: int) -> Taps:
    """The same taps with those outside of ``[0, size)`` added to those at the edges, and without needless zeros."""
    inside = np.clip(positions, 0, size - 1)
    starts = inside[:, 0]
    used = min(positions.shape[1], size)
    starts = np.minimum(starts, size - used)
    folded = np.zeros((len(positions), used))
    rows = np.broadcast_to(np.arange(len(positions))[:, None], inside.shape)
    np.add.at(folded, (rows, inside - starts[:, None]), weights)
    nonzero = np.flatnonzero(np.any(folded != 0, axis=0))
    last = int(nonzero[-1]) + 1 if len(nonzero) else 1
    return Taps(starts.astype(np.int32), np.ascontiguousarray(folded[:, :last], np.float32))
