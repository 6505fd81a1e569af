"""Sizes and regions of resizing: from what the user asks for to what each axis is resampled from and to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

MODES = ("default", "stretch", "not_larger", "not_smaller")


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


def round_half_away(value: float) -> int:
    """The nearest integer; halves go away from zero."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def requested_extents(
    extents: Sequence[float], requested: Sequence[float], mode: str, max_size: Sequence[float] | None
) -> list[float]:
    """The real-valued output extents.

    Args:
        extents: of the region that is resized.
        requested: wanted extents, not negative; 0: not given.
        mode: one of :data:`MODES`.
        max_size: the most that each axis may have, or None.
    """
    given = [size > 0 for size in requested]
    if not any(given):
        return list(extents)
    known = [_scale(size, extent) for size, extent, has in zip(requested, extents, given) if has and extent]
    if mode in ("not_larger", "not_smaller"):
        common = (min if mode == "not_larger" else max)(known) if known else 1.0
        if max_size is not None:
            common = min([common, *(_scale(m, e) for m, e in zip(max_size, extents) if m > 0 and e)])
        return [
            size if has and extent and _scale(size, extent) == common else _single(extent * common)
            for size, extent, has in zip(requested, extents, given)
        ]
    missing = 1.0
    if mode == "default" and known:
        missing = known[0] if len(known) == 1 else math.prod(known) ** (1 / len(known))
    sizes = [size if has else _single(extent * missing) for size, extent, has in zip(requested, extents, given)]
    if max_size is not None:
        sizes = [min(size, most) if most > 0 else size for size, most in zip(sizes, max_size)]
    return sizes


# A size below this keeps the scale of this one: the true scale would leave the range of single precision.
_LEAST_SIZE = 1e-3


def plan_axes(
    shape: Sequence[int],
    requested: Sequence[float],
    mode: str = "default",
    max_size: Sequence[float] | None = None,
    roi: tuple[Sequence[float], Sequence[float]] | None = None,
    subpixel_scale: bool = True,
    rounded_to: Callable[[float], int] = round_half_away,
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
        rounded_to: the whole extent for a real one.
        alignment: the point of each region that stays when the region is adjusted: 0 its start, 1 its end; None: middles.
    """
    starts, ends = ([0.0] * len(shape), [float(n) for n in shape]) if roi is None else (list(roi[0]), list(roi[1]))
    extents = [_single(abs(end - start)) for start, end in zip(starts, ends)]
    sizes = requested_extents(extents, [abs(size) for size in requested], mode, max_size)
    plans = []
    for axis, size in enumerate(sizes):
        rounded = max(1, rounded_to(size))
        start, end = starts[axis], ends[axis]
        if requested[axis] < 0 or (requested[axis] == 0 and mode in ("default", "stretch") and start > end):
            start, end = end, start
        if subpixel_scale and size > 0 and size != rounded:
            fixed = start + (end - start) * (0.5 if alignment is None else alignment[axis])
            ratio = rounded / max(size, _LEAST_SIZE)
            start, end = (_single(fixed + (edge - fixed) * ratio) for edge in (start, end))
        plans.append(AxisPlan(int(shape[axis]), rounded, start, end))
    return plans


def _single(value: float) -> float:
    """The value in single precision, which decides ties: where a size is halved, where a pixel is the nearest."""
    return float(np.float32(value))


def _scale(size: float, extent: float) -> float:
    return float(np.float32(size) / np.float32(extent))
