"""Windows of images: their positions and extents, and the policies for windows that reach outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

POLICIES = ("error", "pad", "trim_to_shape")
EXTENSIONS = ("clamp", "reflect", "reflect_101", "wrap")
"""The policies that continue an array beyond its border. What precedes a row "abc": aa, ba, cb or bc, in this order."""
_OTHER_NAMES = {"constant": "pad", "const": "pad", "edge": "clamp", "reflect_1001": "reflect"}


@dataclass(frozen=True)
class Region:
    """A box in an array.

    Attributes:
        anchor: the position at which the box begins, in each dimension; may be negative.
        extents: the extent of the box in each dimension.
    """

    anchor: tuple[int, ...]
    extents: tuple[int, ...]

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> Region:
        """Return the region that covers all of an array of ``shape``."""
        return cls((0,) * len(shape), shape)

    def inside(self, shape: Sequence[int]) -> bool:
        """Return whether the region lies within an array of ``shape``."""
        return all(a >= 0 and a + e <= s for a, e, s in zip(self.anchor, self.extents, shape))

    def overlap(self, shape: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return the part inside an array of ``shape``: as slices of that array, and as slices of the region."""
        source, target = [], []
        for anchor, extent, size in zip(self.anchor, self.extents, shape):
            start, stop = min(max(anchor, 0), size), max(min(anchor + extent, size), 0)
            stop = max(stop, start)
            source.append(slice(start, stop))
            target.append(slice(start - anchor, stop - anchor))
        return tuple(source), tuple(target)


def check_policy(policy: str, extends: bool = False) -> str:
    """Return the canonical name of a policy; raise RuntimeError if it is unknown.

    Args:
        policy: the name of a policy, in lower or upper case.
        extends: whether :data:`EXTENSIONS` are supported.
    """
    supported = (*POLICIES, *EXTENSIONS) if extends else POLICIES
    name = _OTHER_NAMES.get(policy.lower(), policy.lower())
    if name not in supported:
        raise RuntimeError(f"Not supported out_of_bounds_policy: {policy}. Use one of {', '.join(supported)}")
    return name


def extended_places(anchor: int, extent: int, size: int, policy: str) -> np.ndarray:
    """Return the indices of the elements at ``extent`` positions from ``anchor`` on, if a policy continues an array of ``size`` elements.

    >>> extended_places(-2, 7, 3, "reflect_101").tolist()
    [2, 1, 0, 1, 2, 1, 0]
    """
    if not size and extent:
        raise RuntimeError(f"An empty dimension cannot be extended by out_of_bounds_policy='{policy}'")
    places = np.arange(anchor, anchor + extent)
    if policy == "clamp" or size < 2:
        return places.clip(0, max(size - 1, 0))
    if policy == "wrap":
        return places % size
    # A mirrored array has a period of twice the size, minus the two edges if these are not repeated.
    repeated = 1 if policy == "reflect" else 0
    period = 2 * size - 2 + 2 * repeated
    places %= period
    return np.where(places < size, places, period - repeated - places)


ROUNDINGS = ("round", "truncate", "torchvision", "floor")
"""The ways to round, in this order: halves away from zero; towards zero; halves to even, but towards zero if a window begins before
the array; down.
"""


def crop_regions(
    shapes: np.ndarray, wanted: np.ndarray, positions: np.ndarray, rounding: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the anchors and extents of crops, int64, one row for each array.

    Args:
        shapes: the arrays' shapes, int64, one row for each array.
        wanted: the requested extents, float64 without fractions; below 1: the whole dimension. One row for each array, or one for all.
        positions: relative positions in each dimension, from 0 (at the start) to 1 (at the end). One row for each
            array, or one for all.
        rounding: how anchors are rounded: one of :data:`ROUNDINGS`.

    Raises:
        RuntimeError: a position is out of range.
    """
    from penstock.kernels.cpu.windows import fill_crops

    shapes = np.ascontiguousarray(shapes)
    anchors, extents = np.empty_like(shapes), np.empty_like(shapes)
    bad = fill_crops(shapes, wanted, positions, ROUNDINGS.index(rounding), anchors, extents)
    if bad >= 0:
        row, axis = divmod(bad, shapes.shape[1])
        position = positions[min(row, len(positions) - 1), axis]
        raise RuntimeError(f"Anchor of a crop ({position:f}) is out of range [0.0, 1.0]")
    return anchors, extents


def apply_policy(shapes: np.ndarray, anchors: np.ndarray, extents: np.ndarray, policy: str) -> None:
    """Apply an ``out_of_bounds_policy`` to regions, with one row for each array of ``shapes``: clip the regions, or raise
    RuntimeError if one reaches outside its array.
    """
    from penstock.kernels.cpu.windows import first_outside

    if policy == "pad" or policy in EXTENSIONS:
        return
    row = first_outside(shapes, anchors, extents, policy != "error")
    if row >= 0:
        shape, anchor, extent = (array[row].tolist() for array in (shapes, anchors, extents))
        raise RuntimeError(
            f"Slice can't be placed out of bounds with current policy. Got: input_shape={shape}, "
            f"slice_anchor={anchor}, slice_shape={extent}. Use out_of_bounds_policy='pad' or "
            "'trim_to_shape' to allow it."
        )


def cut_off(values: Sequence[float] | np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert numbers like a C cast on x86-64: for integers, drop fractions and keep the lowest bits.

    The cast first converts to a 32-bit integer (64-bit for wide types); values beyond its range become the smallest such integer.
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
    """Return the fill value of each channel, or one for all; raise RuntimeError if there are neither one nor ``channels`` values."""
    if len(values) <= 1 or channels is None:
        return np.array(values[:1] or [0.0], np.float64)
    if len(values) != channels:
        raise RuntimeError(f"`fill_values` has {len(values)} entries, but the data has {channels} channels")
    return np.array(values, np.float64)
