"""Compute each axis's input region and output size from the user's request to resize."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

MODES = ("default", "stretch", "not_larger", "not_smaller")
ROUNDINGS = ("round", "truncate", "ceil")
_NO_LIMITS = np.empty(0)
# The starts and ends of regions if there are none, so that whole images are resized; and the alignment with the centre, for up to 32 axes.
NO_REGION, MIDDLES = (np.empty((0, 0)), np.empty((0, 0))), np.full((1, 32), 0.5)


@dataclass(frozen=True)
class AxisPlan:
    """How to resample one axis.

    Attributes:
        size_in, size_out: the extents of the input and the output, in samples.
        start, end: the region of the input that the output covers, where 0 is the first pixel's edge; mirrored if the end comes first.
    """

    size_in: int
    size_out: int
    start: float
    end: float


@dataclass
class AxisPlans:
    """How to resample one axis of many images: arrays with an entry for each image.

    Attributes:
        size_in, size_out: the extents of the input and the output, in samples, int64.
        start, end: the region of the input that the output covers, float64; mirrored if the end comes first.
        kinds: the filters' numbers.
        antialias: whether filters widen when an axis shrinks.
        first, count: the first output position to compute, and the number of positions, int64.
        mirrored: whether these positions are in reverse order.
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
        """Return the plans for computing windows of the outputs; these plans must be for the whole outputs."""
        return replace(self, first=first, count=count, mirrored=mirrored)


def round_half_away(value: float) -> int:
    """Return the nearest integer; halves are rounded away from zero."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def plan_axes(
    shapes: np.ndarray,
    requested: np.ndarray,
    mode: str = "default",
    most: Sequence[float] = (),
    region: tuple[np.ndarray, np.ndarray] | None = None,
    relative: bool = False,
    subpixel_scale: bool = True,
    rounding: str = "round",
    alignment: np.ndarray | None = None,
    keeps_empty: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each output's extents (int64), and the starts and ends (float64) of the input's region that it covers, with one row for each
    image.

    Args:
        shapes: the images' extents, int64, one row for each image.
        requested: the requested extents; 0: the extent follows from the others according to ``mode``; negative: mirrored. One row for
            each image, or one for all.
        mode: one of :data:`MODES`.
        most: the maximum extent of each axis, or empty.
        region: the starts and ends of the regions to resize, with one row for each image, or one for all; None: the whole images.
            An axis whose start is greater than its end is mirrored, unless ``mode`` is ``default`` or ``stretch`` and
            its extent is not requested.
        relative: whether regions are fractions of the extents instead of pixels.
        subpixel_scale: whether to adjust the region to keep the exact scale when an extent is rounded.
        rounding: how real-valued extents are rounded: one of :data:`ROUNDINGS`.
        alignment: the point of each region that stays fixed when the region is adjusted: 0 is its start, 1 its end; None:
            the centre.
        keeps_empty: whether images without pixels are accepted: their empty axes stay empty, and the other axes get the requested
            extents.

    Raises:
        OverflowError, ValueError: an extent is infinite or NaN.
    """
    from penstock.kernels.cpu.axis_plans import fill_axis_plans

    sizes, starts, ends = np.empty(shapes.shape, np.int64), np.empty(shapes.shape), np.empty(shapes.shape)
    region_starts, region_ends = NO_REGION if region is None else region
    unusable = fill_axis_plans(
        shapes,
        requested,
        MODES.index(mode),
        np.array(most, np.float64) if most else _NO_LIMITS,
        region_starts,
        region_ends,
        bool(relative),
        bool(subpixel_scale),
        ROUNDINGS.index(rounding),
        MIDDLES if alignment is None else alignment,
        keeps_empty,
        starts,
        ends,
        sizes,
    )
    if unusable != 0:
        raise ValueError(f"Cannot resize to an extent of {int(unusable)}")
    return sizes, starts, ends


def torchvision_sizes(extents: np.ndarray, requested: np.ndarray, mode: str, most: Sequence[float]) -> np.ndarray:
    """Return the extents (height, width) for a requested length of one side; the other side is truncated, as in torchvision.

    Args:
        extents: the images' extents, float64, one row for each image.
        requested: the requested length, twice in each row; one row for each image, or one for all.
        mode: `not_smaller`: the length of the shorter side is requested; `not_larger`: that of the longer side.
        most: the maximum length of the longer side, or empty.
    """
    short, long = np.maximum(extents.min(axis=1), 1), np.maximum(extents.max(axis=1), 1)
    given = np.broadcast_to(requested[:, 0], len(extents))
    if mode == "not_smaller":
        new_short, new_long = given, np.trunc(given * long / short)
    else:
        new_short, new_long = np.trunc(given * short / long), given
    if most:
        limit = min(most)
        too_long = new_long > limit
        new_short = np.where(too_long, np.trunc(limit * new_short / new_long), new_short)
        new_long = np.where(too_long, limit, new_long)
    upright = extents[:, :1] >= extents[:, 1:]
    sizes = np.stack([new_short, new_long], axis=1)
    return np.maximum(np.where(upright, sizes[:, ::-1], sizes), 1)


def window_axes(
    anchors: np.ndarray,
    extents: np.ndarray,
    mirrored: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Narrow the result of :func:`plan_axes` to windows of the outputs, which may be mirrored.

    The windows may reach outside the outputs, where the edge is repeated.
    """
    from penstock.kernels.cpu.axis_plans import fill_windows

    fill_windows(anchors, extents, mirrored, sizes, starts, ends)
