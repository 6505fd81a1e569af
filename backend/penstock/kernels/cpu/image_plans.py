"""Resizing and then cropping images, planned in one call for a whole batch: from sizes to the descriptors that a GPU reads."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.axis_plans import fill_axis_plans, fill_filters
from penstock.kernels.cpu.options import brief, inner
from penstock.kernels.cpu.resampling_plans import StackRules, plan_stacks
from penstock.kernels.cpu.tables import plan_tables
from penstock.kernels.cpu.windows import fill_crops

_LARGEST = 1 << 31


@inner
def _common_channels(shapes: np.ndarray) -> int:
    """The channels of images that have pixels; 0 if images differ in them, or one is empty."""
    for image in range(len(shapes)):
        if shapes[image, 0] * shapes[image, 1] * shapes[image, 2] == 0 or shapes[image, 2] != shapes[0, 2]:
            return 0
    return shapes[0, 2]


@inner
def _are_inside(sizes: np.ndarray, anchors: np.ndarray, extents: np.ndarray) -> bool:
    """Whether all windows have pixels, and lie inside."""
    for image in range(len(sizes)):
        for axis in range(2):
            start, stop = anchors[image, axis], anchors[image, axis] + extents[image, axis]
            if start < 0 or stop <= start or stop > sizes[image, axis] or sizes[image, axis] >= _LARGEST:
                return False
    return True


@inner
def _fill_stacks(shapes: np.ndarray, stacks: np.ndarray) -> None:
    """Makes shapes of images (H, W, C) those of stacks of one image."""
    for image in range(len(shapes)):
        stacks[image, 0] = 1
        for axis in range(3):
            stacks[image, 1 + axis] = shapes[image, axis]


@inner
def _columns(
    axis: int,
    extents: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    kinds: np.ndarray,
    anchors: np.ndarray,
    cropped: np.ndarray,
    mirrored: bool,
) -> tuple[np.ndarray, ...]:
    """The plans of one axis, as :func:`plan_tables` takes them."""
    return (
        extents[:, axis].copy(),
        sizes[:, axis].copy(),
        starts[:, axis].copy(),
        ends[:, axis].copy(),
        kinds[:, axis].copy(),
        anchors[:, axis].copy(),
        cropped[:, axis].copy(),
        np.full(len(sizes), mirrored),
    )


Sizes = tuple[
    np.ndarray,
    int,
    np.ndarray,
    tuple[np.ndarray, np.ndarray],
    bool,
    bool,
    np.ndarray,
    tuple[np.ndarray, np.ndarray],
    bool,
    np.ndarray,
    np.ndarray,
    int,
    bool,
]
"""How images are resized and cropped: the arguments of :func:`plan_images` from ``requested`` to ``mirrored``."""


@brief
def plan_images(
    shapes: np.ndarray,
    requested: np.ndarray,
    mode: int,
    most: np.ndarray,
    region: tuple[np.ndarray, np.ndarray],
    relative: bool,
    subpixel: bool,
    alignment: np.ndarray,
    filters: tuple[np.ndarray, np.ndarray],
    antialias: bool,
    wanted: np.ndarray,
    positions: np.ndarray,
    rounding: int,
    mirrored: bool,
    known_filters: np.ndarray,
    max_support: float,
    copied: int,
    rules: StackRules,
    rows: np.ndarray,
    stacks: np.ndarray,
    cropped: np.ndarray,
    descriptors: np.ndarray,
    blocks: np.ndarray,
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Plans images that are resized and cropped alike.

    Args:
        shapes: of the images (H, W, C), in rows.
        requested, mode, most, relative, subpixel, alignment: as in :func:`fill_axis_plans`; a row for all.
        region: its starts and ends, likewise.
        filters: those of axes that shrink, and of axes that grow; a row for all.
        antialias: whether filters widen when an axis shrinks.
        wanted, positions, rounding: of the windows in H and W, as in :func:`fill_crops`; a row for all.
        mirrored: whether all rows of pixels are reversed.
        known_filters, max_support, copied, rows: as in :func:`plan_tables`.
        rules: as in :func:`plan_stacks`.
        descriptors, blocks: to fill, as there, but for addresses; those of sources are to be multiples of 16.
        stacks: to fill: the shapes of the images as stacks (1, H, W, C).
        cropped: to fill: the sizes of the results (h, w).

    Returns:
        What :func:`plan_tables` returns, and what :func:`plan_stacks` does; zeros if the batch is to be looked
        at image by image: an argument is out of range, an image is empty, a window reaches outside, or the channels differ.
    """
    count = len(shapes)
    nothing = 0, 0, 0, 0, 0, 0, 0, 0, 0
    if _common_channels(shapes) == 0:
        return nothing
    extents, anchors = shapes[:, :2].copy(), np.empty((count, 2), np.int64)
    sizes, starts, ends = np.empty((count, 2), np.int64), np.empty((count, 2)), np.empty((count, 2))
    unusable = fill_axis_plans(
        extents,
        requested,
        mode,
        most,
        region[0],
        region[1],
        relative,
        subpixel,
        0,
        alignment,
        True,
        starts,
        ends,
        sizes,
    )
    if unusable != 0.0 or fill_crops(sizes, wanted, positions, rounding, anchors, cropped) >= 0:
        return nothing
    if not _are_inside(sizes, anchors, cropped):
        return nothing
    _fill_stacks(shapes, stacks)
    kinds = np.empty((count, 2), np.int64)
    fill_filters(sizes, starts, ends, filters[0], filters[1], kinds)
    vertical = _columns(0, extents, sizes, starts, ends, kinds, anchors, cropped, False)
    horizontal = _columns(1, extents, sizes, starts, ends, kinds, anchors, cropped, mirrored)
    down, across, num_starts, num_weights = plan_tables(
        rows, vertical, horizontal, (antialias, antialias), known_filters, max_support, copied
    )
    nowhere, of_height, of_width = np.zeros(count, np.int64), rows[:down], rows[down : down + across]
    place = descriptors, blocks, nowhere, nowhere, stacks, of_height, of_width
    shared, kept, strip, taps, channels = plan_stacks(*place, rules)
    return down, across, num_starts, num_weights, shared, kept, strip, taps, channels


@brief
def plan_windows(
    shapes: np.ndarray,
    windows: np.ndarray,
    size: np.ndarray,
    filters: tuple[np.ndarray, np.ndarray],
    antialias: bool,
    known_filters: np.ndarray,
    max_support: float,
    rows: np.ndarray,
    stacks: np.ndarray,
    results: np.ndarray,
) -> tuple[int, int, int, int]:
    """Plans images of which windows are resized.

    Args:
        shapes: of the images (H, W, C), in rows; none is empty.
        windows: (y, x, height, width), in rows.
        size: of all results (h, w); -1: as the image's.
        filters, antialias, known_filters, max_support, rows, stacks: as in :func:`plan_images`.
        results: to fill: the shapes of the results (h, w, C).

    Returns:
        What :func:`plan_tables` returns; zeros if a result is too large.
    """
    count = len(shapes)
    sizes, starts, ends = np.empty((count, 2), np.int64), np.empty((count, 2)), np.empty((count, 2))
    for image in range(count):
        for axis in range(2):
            sizes[image, axis] = shapes[image, axis] if size[axis] == -1 else size[axis]
            if sizes[image, axis] >= _LARGEST:
                return 0, 0, 0, 0
            starts[image, axis] = windows[image, axis]
            ends[image, axis] = windows[image, axis] + windows[image, 2 + axis]
    for image in range(count):
        results[image, 0], results[image, 1], results[image, 2] = sizes[image, 0], sizes[image, 1], shapes[image, 2]
    _fill_stacks(shapes, stacks)
    kinds, anchors = np.empty((count, 2), np.int64), np.zeros((count, 2), np.int64)
    fill_filters(sizes, starts, ends, filters[0], filters[1], kinds)
    vertical = _columns(0, shapes, sizes, starts, ends, kinds, anchors, sizes, False)
    horizontal = _columns(1, shapes, sizes, starts, ends, kinds, anchors, sizes, False)
    return plan_tables(rows, vertical, horizontal, (antialias, antialias), known_filters, max_support, 0)
