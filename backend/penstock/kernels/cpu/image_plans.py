"""Resizing and then cropping images, planned in one call for a whole batch: from sizes to the descriptors that a GPU reads."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.axis_plans import fill_axis_plans, fill_filters
from penstock.kernels.cpu.options import brief, inner
from penstock.kernels.cpu.resampling_plans import RowLimits, StackRules, StripLimits, plan_stacks
from penstock.kernels.cpu.tables import plan_tables, read_range
from penstock.kernels.cpu.windows import fill_crops

_LARGEST = 1 << 31
# Pixels at whose multiples windows begin and end, where images do not, so that rows can be read in groups.
_GROUP = 8


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
def _fill_windows(shapes: np.ndarray, down: np.ndarray, across: np.ndarray, windows: np.ndarray) -> None:
    """Fills in the window of each image that resampling reads: top, left, height and width."""
    for image in range(len(shapes)):
        top, bottom = read_range(down[min(image, len(down) - 1)])
        left, right = read_range(across[min(image, len(across) - 1)])
        left -= left % _GROUP
        right = min(-(-right // _GROUP) * _GROUP, shapes[image, 1])
        windows[image, 0], windows[image, 1] = top, left
        windows[image, 2], windows[image, 3] = bottom - top, right - left


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
        extents[:, axis],
        sizes[:, axis],
        starts[:, axis],
        ends[:, axis],
        kinds[:, axis],
        anchors[:, axis],
        cropped[:, axis],
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
"""How images are resized and cropped: the arguments of :func:`packed_rules` from ``requested`` to ``mirrored``."""

# The numbers of the rules of all images of a type: single ones, pairs for H and W, and those of stacks.
_MODE, _LIMITED, _WITHIN, _RELATIVE, _SUBPIXEL, _SHRINKING, _GROWING, _ANTIALIAS, _ROUNDING, _MIRRORED = range(10)
_MAX_SUPPORT, _COPIED, _CHANNELS, _PLANAR, _NORMALIZE, _SHIFT, _FILL, _PITCH, _THREADS, _ITEMSIZE = range(10, 20)
_REQUESTED, _MOST, _STARTS, _ENDS, _ALIGNMENT, _WANTED, _POSITIONS = range(20, 34, 2)
_STRIP_LIMITS = 34
_ROW_LIMITS = _STRIP_LIMITS + len(StripLimits._fields)
_RULES = _ROW_LIMITS + len(RowLimits._fields)


def packed_rules(
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
    max_support: float,
    copied: int,
    stacks: StackRules,
) -> np.ndarray:
    """The rules of images that are resized and cropped alike, as numbers: many arguments take longer than what is done with them.

    Args:
        requested, mode, most, relative, subpixel, alignment: as in :func:`fill_axis_plans`; a row for all.
        region: its starts and ends, likewise.
        filters: those of axes that shrink, and of axes that grow; a row for all.
        antialias: whether filters widen when an axis shrinks.
        wanted, positions, rounding: of the windows in H and W, as in :func:`fill_crops`; a row for all.
        mirrored: whether all rows of pixels are reversed.
        max_support, copied: as in :func:`plan_tables`.
        stacks: as in :func:`plan_stacks`.

    Returns:
        float64.
    """
    stored, pitch, threads, strips, itemsize, rows = stacks
    rules = np.zeros(_RULES)
    shrinking, growing = (kinds[0, 0] for kinds in filters)
    limited, within = len(most) > 0, len(region[0]) > 0
    rules[:_COPIED] = (
        *(mode, limited, within, relative, subpixel, shrinking, growing, antialias, rounding, mirrored),
        max_support,
    )
    rules[_COPIED:_REQUESTED] = copied, *stored, pitch, threads, itemsize
    pairs = [(_REQUESTED, requested[0]), (_ALIGNMENT, alignment[0]), (_WANTED, wanted[0]), (_POSITIONS, positions[0])]
    pairs += [(_MOST, most)] if limited else []
    pairs += [(_STARTS, region[0][0]), (_ENDS, region[1][0])] if within else []
    for place, pair in pairs:
        rules[place : place + 2] = pair[:2]
    rules[_STRIP_LIMITS:_ROW_LIMITS], rules[_ROW_LIMITS:] = strips, rows
    return rules


@inner
def _stack_rules(rules: np.ndarray) -> StackRules:
    """What :func:`packed_rules` was given for stacks."""
    whole = rules.astype(np.int64)
    stored = whole[_CHANNELS], rules[_PLANAR] != 0, rules[_NORMALIZE] != 0, rules[_SHIFT], rules[_FILL]
    own = whole[_STRIP_LIMITS:_ROW_LIMITS]
    strips = StripLimits(own[0], own[1], own[2], own[3], own[4], own[5], own[6], own[7])
    own = whole[_ROW_LIMITS:]
    rows = RowLimits(own[0], own[1], own[2], own[3])
    return stored, whole[_PITCH], whole[_THREADS], strips, whole[_ITEMSIZE], rows


@inner
def _pair(rules: np.ndarray, place: int, is_given: bool) -> np.ndarray:
    """A row of two numbers; none if they are not given."""
    return rules[place : place + 2 * np.int64(is_given)].reshape(-1, 2)


@brief
def plan_images(
    shapes: np.ndarray,
    rules: np.ndarray,
    known_filters: np.ndarray,
    rows: np.ndarray,
    stacks: np.ndarray,
    cropped: np.ndarray,
    descriptors: np.ndarray,
    blocks: np.ndarray,
    windows: np.ndarray,
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Plans images that are resized and cropped alike.

    Args:
        shapes: of the images (H, W, C), in rows.
        rules: by :func:`packed_rules`.
        known_filters, rows: as in :func:`plan_tables`.
        stacks: to fill: the shapes of the images as stacks (1, H, W, C), or, if only windows are in memory, of these.
        cropped: to fill: the sizes of the results (h, w).
        descriptors, blocks: to fill, as in :func:`plan_stacks`, but for the address of the result, and with what is to be added to that
            of the image or window, which is to be a multiple of 16.
        windows: to fill: what is read of each image, and will be in memory without the rest: top, left, height and width. Of no rows:
            images will be in memory whole.

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
        _pair(rules, _REQUESTED, True),
        np.int64(rules[_MODE]),
        _pair(rules, _MOST, rules[_LIMITED] != 0).reshape(-1),
        _pair(rules, _STARTS, rules[_WITHIN] != 0),
        _pair(rules, _ENDS, rules[_WITHIN] != 0),
        rules[_RELATIVE] != 0,
        rules[_SUBPIXEL] != 0,
        0,
        _pair(rules, _ALIGNMENT, True),
        True,
        starts,
        ends,
        sizes,
    )
    crop = _pair(rules, _WANTED, True), _pair(rules, _POSITIONS, True), np.int64(rules[_ROUNDING])
    if unusable != 0.0 or fill_crops(sizes, crop[0], crop[1], crop[2], anchors, cropped) >= 0:
        return nothing
    if not _are_inside(sizes, anchors, cropped):
        return nothing
    _fill_stacks(shapes, stacks)
    kinds, filters = np.empty((count, 2), np.int64), rules[_SHRINKING : _GROWING + 1].astype(np.int64).reshape(2, 1, 1)
    fill_filters(sizes, starts, ends, filters[0], filters[1], kinds)
    vertical = _columns(0, extents, sizes, starts, ends, kinds, anchors, cropped, False)
    horizontal = _columns(1, extents, sizes, starts, ends, kinds, anchors, cropped, rules[_MIRRORED] != 0)
    antialias, copied = rules[_ANTIALIAS] != 0, np.int64(rules[_COPIED])
    down, across, num_starts, num_weights = plan_tables(
        rows, vertical, horizontal, (antialias, antialias), known_filters, rules[_MAX_SUPPORT], copied
    )
    nowhere, of_height, of_width = np.zeros(count, np.int64), rows[:down], rows[down : down + across]
    origins = np.zeros(count, np.int64)
    if len(windows) > 0:
        _fill_windows(shapes, of_height, of_width, windows)
        for image in range(count):
            top, left, height, width = windows[image]
            stacks[image, 1], stacks[image, 2] = height, width
            # Where the image's first pixel would be, before that of the window.
            origins[image] = -(top * width + left) * shapes[image, 2] * np.int64(rules[_ITEMSIZE])
    place = descriptors, blocks, origins, nowhere, stacks, of_height, of_width
    shared, kept, strip, taps, channels = plan_stacks(*place, _stack_rules(rules))
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
        filters, antialias: as in :func:`packed_rules`.
        known_filters, max_support, rows: as in :func:`plan_tables`.
        stacks: to fill: the shapes of the images as stacks (1, H, W, C).
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
