"""Compute output sizes and input regions of many images to resize, in one call.

Written as scalar loops: the shorter NumPy equivalents take numba seconds to compile.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

# When an output extent is rounded up to 1, its region grows by at most this factor.
_MAX_GROWTH = 10.0
# A region with a smaller extent is enlarged by half of this on each side; in pixels, in single precision.
_MIN_REGION = np.float64(np.float32(1e-3))
# The numbers of modes in `resize_shapes.MODES`.
_DEFAULT, _STRETCH, _NOT_LARGER, _NOT_SMALLER = range(4)
_TOO_LARGE = 2.0**62
# How real-valued extents are rounded to integers.
HALF_AWAY, TRUNCATED, CEILED = range(3)


@kernel
def _single(value: float) -> np.float64:
    """Return the value rounded to single precision, as in DALI: it decides how sizes and positions halfway between integers are rounded."""
    return np.float64(np.float32(value))


@inner
def _scale(size: float, extent: float) -> np.float64:
    return np.float64(np.float32(size) / np.float32(extent))


@inner
def _fill_extents(extents: np.ndarray, requested: np.ndarray, mode: int, most: np.ndarray, sizes: np.ndarray) -> None:
    """Compute the real-valued output extents of one image. Of requested extents, the absolute values are used; 0: not requested."""
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
        for axis in range(axes):
            sizes[axis] = extents[axis]
        return
    if mode >= _NOT_LARGER:
        common = 1.0
        if known:
            common = lowest if mode == _NOT_LARGER else highest
        for axis in range(most.size):
            if most[axis] > 0 and extents[axis] != 0:
                # This scale is in double precision, unlike scales from requested extents.
                common = min(common, most[axis] / extents[axis])
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


@kernel
def _region(
    row: int, axis: int, size: int, region_starts: np.ndarray, region_ends: np.ndarray, relative: bool
) -> tuple[float, float]:
    """Return the start and end of an image's region along one axis, in input samples."""
    if len(region_starts) == 0:
        return 0.0, np.float64(size)
    start = region_starts[min(row, len(region_starts) - 1), axis]
    end = region_ends[min(row, len(region_ends) - 1), axis]
    if relative:
        start, end = _single(start) * size, _single(end) * size
    if size > 0 and abs(end - start) < _MIN_REGION:
        margin = 0.5 * _MIN_REGION if start <= end else -0.5 * _MIN_REGION
        start, end = start - margin, end + margin
    return _single(start), _single(end)


@inner
def _is_empty(shape: np.ndarray) -> bool:
    """Return whether an image has no pixels."""
    product = 1
    for axis in range(shape.size):
        product *= shape[axis]
    return product == 0


@inner
def _fill_empty(
    extents: np.ndarray, requested: np.ndarray, starts: np.ndarray, ends: np.ndarray, sizes: np.ndarray
) -> None:
    """Compute the plan of an image without pixels: empty axes stay empty, other axes get their requested size."""
    for axis in range(extents.size):
        size = np.rint(abs(requested[axis]))
        if extents[axis] == 0:
            size = 0.0
        elif size == 0:
            size = np.float64(extents[axis])
        starts[axis], ends[axis], sizes[axis] = 0.0, np.float64(extents[axis]), np.int64(size)


@kernel
def fill_axis_plans(
    shapes: np.ndarray,
    requested: np.ndarray,
    mode: int,
    most: np.ndarray,
    region_starts: np.ndarray,
    region_ends: np.ndarray,
    relative: bool,
    subpixel: bool,
    rounding: int,
    alignment: np.ndarray,
    keeps_empty: bool,
    starts: np.ndarray,
    ends: np.ndarray,
    rounded: np.ndarray,
) -> float:
    """Compute sizes and regions of images; arrays have one row for each image.

    Args:
        shapes: the input's extents.
        requested: requested extents; 0: not requested; negative: mirrored. One row for each image, or one for all.
        mode: number of the mode.
        most: the maximum extent of each axis; 0: no limit; empty: no limits at all.
        region_starts, region_ends: the bounds of the region to resize; one row for each image, or one for all. Without rows, whole
            images are resized.
        relative: whether regions are fractions of the input's extents.
        subpixel: adjust the region to keep the true scale when an extent is rounded.
        rounding: how extents are rounded: ``HALF_AWAY``, ``TRUNCATED`` or ``CEILED``.
        alignment: for each axis, the point of the region that stays fixed when the region is adjusted; one row for each
            image, or one for all.
        keeps_empty: whether empty axes stay empty.
        starts, ends: filled with the bounds of the input's region that the output covers.
        rounded: filled with the output's extents, rounded to integers.

    Returns:
        The first output extent that is NaN or too large; 0 if there is none.
    """
    images, axes = shapes.shape
    extents, sizes = np.empty(axes), np.empty(axes)
    for image in range(images):
        own = requested[min(image, len(requested) - 1)]
        points = alignment[min(image, len(alignment) - 1)]
        if keeps_empty and _is_empty(shapes[image]):
            _fill_empty(shapes[image], own, starts[image], ends[image], rounded[image])
            continue
        for axis in range(axes):
            start, end = _region(image, axis, shapes[image, axis], region_starts, region_ends, relative)
            starts[image, axis], ends[image, axis] = start, end
            extents[axis] = _single(abs(end - start))
        _fill_extents(extents, own, mode, most, sizes)
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
            wanted = own[axis]
            if wanted < 0 or (wanted == 0 and mode <= _STRETCH and start > end):
                start, end = end, start
            if subpixel and size > 0 and size != whole:
                fixed = start + (end - start) * points[axis]
                ratio = min(whole / size, _MAX_GROWTH)
                start, end = _single(fixed + (start - fixed) * ratio), _single(fixed + (end - fixed) * ratio)
            if not whole < _TOO_LARGE:
                return whole
            starts[image, axis], ends[image, axis], rounded[image, axis] = start, end, np.int64(whole)
    return 0.0


@kernel
def fill_filters(
    sizes: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    shrinking: np.ndarray,
    growing: np.ndarray,
    filters: np.ndarray,
) -> None:
    """Choose each axis's filter: that in ``shrinking`` if the axis shrinks, otherwise that in ``growing``.

    Arrays have one row for each image; ``shrinking`` and ``growing`` may have one row for all.
    """
    images, axes = sizes.shape
    for image in range(images):
        for axis in range(axes):
            shrinks = _single(sizes[image, axis]) < _single(abs(ends[image, axis] - starts[image, axis]))
            kinds = shrinking if shrinks else growing
            filters[image, axis] = kinds[min(image, len(kinds) - 1), 0]


@kernel
def fill_windows(
    anchors: np.ndarray,
    extents: np.ndarray,
    mirrored: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Narrow regions to the parts on which windows of the outputs depend; arrays have one row for each image.

    Windows may reach outside the output, where the edge is repeated.

    Args:
        anchors, extents: the anchors and extents of the windows.
        mirrored: whether each axis of the window is mirrored.
        sizes: the output's extents.
        starts, ends: the start and end of the region that the output covers; changed in place.
    """
    images, axes = anchors.shape
    for image in range(images):
        for axis in range(axes):
            start, anchor = starts[image, axis], anchors[image, axis]
            step = _single(ends[image, axis] - start) / sizes[image, axis]
            first, last = _single(start + anchor * step), _single(start + (anchor + extents[image, axis]) * step)
            if mirrored[image, axis]:
                first, last = last, first
            starts[image, axis], ends[image, axis] = first, last
