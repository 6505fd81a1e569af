"""Sizes and regions of resizing: from what the user asks for to what each axis is resampled from and to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.data_types import DALIInterpType

MODES = ("default", "stretch", "not_larger", "not_smaller")
ROUNDINGS = ("round", "truncate", "ceil")


@dataclass(frozen=True)
class AxisPlan:
    """How one axis is resampled.

    Attributes:
        size_in, size_out: extents in samples.
        start, end: the region of the input that the output covers, in pixel edges; reversed: mirrored.
    """

    size_in: int
    size_out: int
    start: float
    end: float

    @property
    def is_identity(self) -> bool:
        """Whether resampling changes nothing."""
        return self.size_in == self.size_out and self.start == 0 and self.end == self.size_in

    def window(self, start: int, extent: int, mirrored: bool = False) -> AxisPlan:
        """The plan whose output is ``extent`` samples of this one's, from ``start`` on.

        The window may reach outside of this plan's output: there the image goes on as its edge does.
        """
        step = (self.end - self.start) / self.size_out
        first, last = _single(self.start + start * step), _single(self.start + (start + extent) * step)
        return AxisPlan(self.size_in, extent, *((last, first) if mirrored else (first, last)))


@dataclass
class AxisPlans:
    """How one axis of many images is resampled, as arrays of one entry an image.

    Attributes:
        size_in, size_out: extents in samples, int64.
        start, end: the region of the input that the output covers, float64; reversed: mirrored.
        kinds: the filters, as numbers.
        antialias: whether filters widen when an axis shrinks.
        first, count: which output positions are wanted, int64.
        mirrored: whether these are made from the last one to the first.
    """

    size_in: np.ndarray
    size_out: np.ndarray
    start: np.ndarray
    end: np.ndarray
    kinds: np.ndarray
    antialias: bool
    first: np.ndarray
    count: np.ndarray
    mirrored: np.ndarray

    def window(self, first: np.ndarray, count: np.ndarray, mirrored: np.ndarray) -> AxisPlans:
        """The plans that make a part of what these, which make all, do."""
        return replace(self, first=first, count=count, mirrored=mirrored)

    def split(self) -> list[tuple[AxisPlan, DALIInterpType]]:
        """The plan and the filter of each image's axis, without its window."""
        columns = (self.size_in, self.size_out, self.start, self.end)
        plans = map(AxisPlan, *(column.tolist() for column in columns))
        return list(zip(plans, map(DALIInterpType, self.kinds.tolist())))


def round_half_away(value: float) -> int:
    """The nearest integer; halves go away from zero."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def plan_axes(
    shape: Sequence[int],
    requested: Sequence[float],
    mode: str = "default",
    max_size: Sequence[float] | None = None,
    roi: tuple[Sequence[float], Sequence[float]] | None = None,
    subpixel_scale: bool = True,
    rounding: str = "round",
    alignment: Sequence[float] | None = None,
) -> list[AxisPlan]:
    """The plan of each spatial axis.

    Args:
        shape: input extents.
        requested: wanted extents; 0: follows from the others as ``mode`` says; negative: mirrored.
        mode: one of :data:`MODES`.
        max_size: the most that each axis may have, or None.
        roi: start and end of the region to resize, in input pixels; None: all of it. An axis whose start lies behind
            its end is mirrored, unless ``mode`` is ``default`` or ``stretch`` and its extent is not given.
        subpixel_scale: when an extent was rounded, adjust the region so that the true scale is kept.
        rounding: how a real extent becomes whole: one of :data:`ROUNDINGS`.
        alignment: the point of each region that stays when the region is adjusted: 0 its start, 1 its end; None: middles.
    """
    from penstock.kernels.cpu.axis_plans import fill_axis_plans

    region = ([0.0] * len(shape), shape) if roi is None else roi
    starts, ends = (np.array([edges], np.float64) for edges in region)
    rounded = np.empty(starts.shape)
    fill_axis_plans(
        starts,
        ends,
        np.array([requested], np.float64),
        MODES.index(mode),
        np.array([] if max_size is None else max_size, np.float64),
        bool(subpixel_scale),
        ROUNDINGS.index(rounding),
        np.array([0.5] * len(shape) if alignment is None else alignment, np.float64),
        rounded,
    )
    plans = zip(shape, rounded[0].tolist(), starts[0].tolist(), ends[0].tolist())
    return [AxisPlan(int(size), int(extent), start, end) for size, extent, start, end in plans]


def _single(value: float) -> float:
    """The value in single precision, which decides ties: where a size is halved, where a pixel is the nearest."""
    return float(np.float32(value))
