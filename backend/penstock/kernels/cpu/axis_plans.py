"""Sizes and regions of resizing, for many images in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
# A size below this keeps the scale of this one: the true scale would leave the range of single precision.
_MIN_SIZE = 1e-3
# Modes, by their number in `resize_shapes.MODES`.
_DEFAULT, _STRETCH, _NOT_LARGER, _NOT_SMALLER = range(4)
# How real extents become whole.
HALF_AWAY, TRUNCATED, CEILED = range(3)


@njit(**_OPTIONS)
def _single(value):  # type: ignore[no-untyped-def]
    """The value in single precision, which decides ties: where a size is halved, where a pixel is the nearest."""
    return np.float64(np.float32(value))


@njit(**_OPTIONS)
def _scale(size, extent):  # type: ignore[no-untyped-def]
    return np.float64(np.float32(size) / np.float32(extent))


@njit(**_OPTIONS)
def _fill_extents(extents, requested, mode, most, sizes):  # type: ignore[no-untyped-def]
    """The real-valued output extents of one image; ``requested`` may be negative, 0 is not given."""
    axes = extents.size
    given = 0
    known = 0
    lowest, highest, product, only = np.inf, -np.inf, 1.0, 1.0
    for axis in range(axes):
        if abs(requested[axis]) > 0:
            given += 1
            if extents[axis] != 0:
                only = _scale(abs(requested[axis]), extents[axis])
                lowest, highest, product = min(lowest, only), max(highest, only), product * only
                known += 1
    if given == 0:
        sizes[:] = extents
        return
    if mode in (_NOT_LARGER, _NOT_SMALLER):
        common = 1.0
        if known:
            common = lowest if mode == _NOT_LARGER else highest
        for axis in range(most.size):
            if most[axis] > 0 and extents[axis] != 0:
                common = min(common, _scale(most[axis], extents[axis]))
        for axis in range(axes):
            size = abs(requested[axis])
            kept = size > 0 and extents[axis] != 0 and _scale(size, extents[axis]) == common
            sizes[axis] = size if kept else _single(extents[axis] * common)
        return
    missing = 1.0
    if mode == _DEFAULT and known:
        missing = only if known == 1 else product ** (1.0 / known)
    for axis in range(axes):
        size = abs(requested[axis])
        sizes[axis] = size if size > 0 else _single(extents[axis] * missing)
        if most.size and most[axis] > 0:
            sizes[axis] = min(sizes[axis], most[axis])


@njit(**_OPTIONS)
def fill_axis_plans(starts, ends, requested, mode, most, subpixel, rounding, alignment, rounded):  # type: ignore[no-untyped-def]
    """Works out sizes and regions; those of images are in rows.

    Args:
        starts, ends: the region to resize; in their place comes the region that the output covers.
        requested: wanted extents; 0: not given; negative: mirrored.
        mode: number of the mode.
        most: the most that each axis may have; 0: anything; empty: no axis has such.
        subpixel: when an extent was rounded, adjust the region so that the true scale is kept.
        rounding: how extents become whole.
        alignment: of each axis: the point of the region that stays when it is adjusted.
        rounded: the output's extents, to be filled.
    """
    images, axes = starts.shape
    extents, sizes = np.empty(axes), np.empty(axes)
    for image in range(images):
        for axis in range(axes):
            extents[axis] = _single(abs(ends[image, axis] - starts[image, axis]))
        _fill_extents(extents, requested[image], mode, most, sizes)
        for axis in range(axes):
            size, start, end = sizes[axis], starts[image, axis], ends[image, axis]
            if rounding == TRUNCATED:
                whole = np.trunc(size)
            elif rounding == CEILED:
                whole = np.ceil(size)
            else:
                whole = np.floor(size + 0.5)
            if whole < 1.0:
                whole = 1.0
            wanted = requested[image, axis]
            if wanted < 0 or (wanted == 0 and mode in (_DEFAULT, _STRETCH) and start > end):
                start, end = end, start
            if subpixel and size > 0 and size != whole:
                fixed = start + (end - start) * alignment[axis]
                ratio = whole / max(size, _MIN_SIZE)
                start, end = _single(fixed + (start - fixed) * ratio), _single(fixed + (end - fixed) * ratio)
            starts[image, axis], ends[image, axis], rounded[image, axis] = start, end, whole
