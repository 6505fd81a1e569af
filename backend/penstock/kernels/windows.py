"""Windows into images: where crops begin and end, and what becomes of those that reach outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.kernels.resize_shapes import round_half_away

POLICIES = ("error", "pad", "trim_to_shape")


@dataclass(frozen=True)
class Region:
    """A box in an array.

    Attributes:
        anchor: where it begins, in each dimension; may be negative.
        extents: how far it reaches.
    """

    anchor: tuple[int, ...]
    extents: tuple[int, ...]

    def inside(self, shape: Sequence[int]) -> bool:
        """Whether it lies in an array of ``shape``."""
        return all(a >= 0 and a + e <= s for a, e, s in zip(self.anchor, self.extents, shape))

    def overlap(self, shape: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part in an array of ``shape``: as slices of that array, and as slices of the region."""
        source, target = [], []
        for anchor, extent, size in zip(self.anchor, self.extents, shape):
            start, stop = min(max(anchor, 0), size), max(min(anchor + extent, size), 0)
            stop = max(stop, start)
            source.append(slice(start, stop))
            target.append(slice(start - anchor, stop - anchor))
        return tuple(source), tuple(target)


def check_policy(policy: str) -> str:
    """The policy; raises RuntimeError for an unknown one."""
    if policy not in POLICIES:
        raise RuntimeError(f"Not supported out_of_bounds_policy: {policy}. Use one of {', '.join(POLICIES)}")
    return policy


def apply_policy(region: Region, shape: Sequence[int], policy: str) -> Region:
    """The region that is taken of an array of ``shape``; raises RuntimeError where it reaches outside and may not."""
    if policy == "pad" or region.inside(shape):
        return region
    if policy == "error":
        raise RuntimeError(
            f"Slice can't be placed out of bounds with current policy. Got: input_shape={list(shape)}, "
            f"slice_anchor={list(region.anchor)}, slice_shape={list(region.extents)}. Use out_of_bounds_policy='pad' or "
            "'trim_to_shape' to allow it."
        )
    source, _ = region.overlap(shape)
    return Region(tuple(s.start for s in source), tuple(s.stop - s.start for s in source))


def crop_anchor(size: int, extent: int, position: float, rounding: str) -> int:
    """Where a crop of ``extent`` begins in an axis of ``size``: 0 at ``position`` 0, as far as it goes at 1."""
    if not 0 <= position <= 1:
        raise RuntimeError(f"Anchor of a crop ({position:f}) is out of range [0.0, 1.0]")
    anchor = float(np.float32(position) * np.float32(size - extent))
    return round_half_away(anchor) if rounding == "round" else math.trunc(anchor)


def cut_off(values: Sequence[float] | np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers in a type as C casts them on x86-64: integers lose fractions and keep their lowest bits.

    What is beyond the integers of 32 bits (64 for wide types) that the machine converts to becomes the least of those.
    """
    numbers = np.asarray(values, np.float64)
    if dtype.kind not in "iu":
        with np.errstate(over="ignore"):
            return numbers.astype(dtype)
    is_wide = dtype.itemsize == 8 or dtype == np.uint32
    least = float(np.iinfo(np.int64 if is_wide else np.int32).min)
    fits = (numbers >= least) & (numbers < -least)
    return np.where(fits, numbers, least).astype(np.int64).astype(dtype)


def fill_per_channel(values: Sequence[float], channels: int | None) -> np.ndarray:
    """The fill value of each channel (or one for all); raises RuntimeError where their number does not fit."""
    if len(values) <= 1 or channels is None:
        return np.array(values[:1] or [0.0], np.float64)
    if len(values) != channels:
        raise RuntimeError(f"`fill_values` has {len(values)} entries, but the data has {channels} channels")
    return np.array(values, np.float64)
