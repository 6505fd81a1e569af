"""Plan how images are resized and then cropped, from their sizes to the descriptors that a GPU reads, in one call for a whole batch."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.axis_plans import fill_axis_plans, fill_filters
from penstock.kernels.cpu.options import brief, inner
from penstock.kernels.cpu.resampling_plans import STACK_RULES, StackRules, fill_descriptors
from penstock.kernels.cpu.tables import plan_tables, read_range
from penstock.kernels.cpu.windows import fill_crops

_MAX_EXTENT = 1 << 31
# Windows begin and end at multiples of this many pixels, so that rows can be read in groups.
_GROUP = 8


@inner
def _common_channels(shapes: np.ndarray) -> int:
    """Return the number of channels that all images have; 0 if the numbers differ, or if an image has no pixels."""
    for image in range(len(shapes)):
        if shapes[image, 0] * shapes[image, 1] * shapes[image, 2] == 0 or shapes[image, 2] != shapes[0, 2]:
            return 0
    return shapes[0, 2]


@inner
def _are_inside(sizes: np.ndarray, anchors: np.ndarray, extents: np.ndarray) -> bool:
    """Return whether all windows lie inside the images and none is empty."""
    for image in range(len(sizes)):
        for axis in range(2):
            start, stop = anchors[image, axis], anchors[image, axis] + extents[image, axis]
            if start < 0 or stop <= start or stop > sizes[image, axis] or sizes[image, axis] >= _MAX_EXTENT:
                return False
    return True


@inner
def _fill_stacks(shapes: np.ndarray, stacks: np.ndarray) -> None:
    """Convert shapes of images (H, W, C) to shapes of stacks of one image (1, H, W, C)."""
    for image in range(len(shapes)):
        stacks[image, 0] = 1
        for axis in range(3):
            stacks[image, 1 + axis] = shapes[image, axis]


@inner
def _fill_windows(shapes: np.ndarray, down: np.ndarray, across: np.ndarray, windows: np.ndarray) -> None:
    """Fill in the window of each image that resampling reads: top, left, height and width."""
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
    """Return the sizes, regions, filters and windows of all images along one axis, in the form that :func:`plan_tables` expects."""
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
"""How images are resized and cropped: the arguments of :func:`image_rules` from ``requested`` to ``mirrored``."""

IMAGE_RULES = np.dtype(
    [
        ("mode", np.int64),
        ("is_limited", np.int64),
        ("is_within", np.int64),
        ("relative", np.int64),
        ("subpixel", np.int64),
        ("filters", np.int64, (2, 1, 1)),
        ("antialias", np.int64),
        ("rounding", np.int64),
        ("mirrored", np.int64),
        ("max_support", np.float64),
        ("copied", np.int64),
        ("requested", np.float64, (1, 2)),
        ("most", np.float64, 2),
        ("starts", np.float64, (1, 2)),
        ("ends", np.float64, (1, 2)),
        ("alignment", np.float64, (1, 2)),
        ("wanted", np.float64, (1, 2)),
        ("positions", np.float64, (1, 2)),
        ("stacks", STACK_RULES),
    ]
)
"""The rules by which all images of a batch are resized and cropped; see :func:`image_rules`. Pairs are values for H and W. ``most`` is
valid only if ``is_limited``; ``starts`` and ``ends``, only if ``is_within``. The first of ``filters`` is for axes that shrink, the second
for axes that grow.
"""


def image_rules(
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
    """Return the rules by which all images of a batch are resized and cropped, in one record: passing many arguments takes longer
    than the computation.

    Args:
        requested, mode, most, relative, subpixel, alignment: as in :func:`fill_axis_plans`; one row for all images.
        region: the region's starts and ends, as in :func:`fill_axis_plans`; one row for all images.
        filters: the filters of axes that shrink, and of axes that grow; one row for all images.
        antialias: whether filters widen when an axis shrinks.
        wanted, positions, rounding: the windows to crop, in H and W, as in :func:`fill_crops`; one row for all images.
        mirrored: whether rows of pixels are reversed.
        max_support, copied: as for :func:`plan_tables`.
        stacks: as in :func:`plan_stacks`.

    Returns:
        One :data:`IMAGE_RULES`.
    """
    rules = np.zeros(1, IMAGE_RULES)
    rules["mode"], rules["relative"], rules["subpixel"] = mode, relative, subpixel
    rules["is_limited"], rules["is_within"] = len(most) > 0, len(region[0]) > 0
    rules["filters"] = np.reshape([kinds[0, 0] for kinds in filters], (2, 1, 1))
    rules["antialias"], rules["rounding"], rules["mirrored"] = antialias, rounding, mirrored
    rules["max_support"], rules["copied"], rules["stacks"] = max_support, copied, stacks.record()
    rules["requested"], rules["alignment"] = requested[0, :2], alignment[0, :2]
    rules["wanted"], rules["positions"] = wanted[0, :2], positions[0, :2]
    if len(most):
        rules["most"] = most[:2]
    if len(region[0]):
        rules["starts"], rules["ends"] = region[0][0, :2], region[1][0, :2]
    return rules


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
    """Plan images that are all resized and cropped by the same rules.

    Args:
        shapes: the shape (H, W, C) of each image, in rows.
        rules: the rules, from :func:`image_rules`.
        known_filters, rows: as in :func:`plan_tables`.
        stacks: filled with the shapes (1, H, W, C) of the images as stacks, or of the windows if only these will be in memory.
        cropped: filled with the sizes (h, w) of the results.
        descriptors, blocks: filled as in :func:`plan_stacks`, except that the address of the result is missing, and instead of the
            image's address there is the offset to add to the address of the image or window, which must be a multiple of 16.
        windows: filled with the part of each image that is read (top, left, height, width), if only that part will be in memory.
            Without rows: whole images will be in memory.

    Returns:
        The results of :func:`plan_tables` and of :func:`plan_stacks`; zeros if images have to be planned one by one: an
        argument is out of range, an image is empty, a window reaches outside its image, or the numbers of channels differ.
    """
    count = len(shapes)
    nothing = 0, 0, 0, 0, 0, 0, 0, 0, 0
    if _common_channels(shapes) == 0:
        return nothing
    by = rules[0]
    extents, anchors = shapes[:, :2].copy(), np.empty((count, 2), np.int64)
    sizes, starts, ends = np.empty((count, 2), np.int64), np.empty((count, 2)), np.empty((count, 2))
    regions = np.int64(by.is_within != 0)
    unusable = fill_axis_plans(
        extents,
        by.requested,
        by.mode,
        by.most[: 2 * np.int64(by.is_limited != 0)],
        by.starts[:regions],
        by.ends[:regions],
        by.relative != 0,
        by.subpixel != 0,
        0,
        by.alignment,
        True,
        starts,
        ends,
        sizes,
    )
    if unusable != 0.0 or fill_crops(sizes, by.wanted, by.positions, by.rounding, anchors, cropped) >= 0:
        return nothing
    if not _are_inside(sizes, anchors, cropped):
        return nothing
    _fill_stacks(shapes, stacks)
    kinds = np.empty((count, 2), np.int64)
    fill_filters(sizes, starts, ends, by.filters[0], by.filters[1], kinds)
    vertical = _columns(0, extents, sizes, starts, ends, kinds, anchors, cropped, False)
    horizontal = _columns(1, extents, sizes, starts, ends, kinds, anchors, cropped, by.mirrored != 0)
    antialias = by.antialias != 0
    down, across, num_starts, num_weights = plan_tables(
        rows, vertical, horizontal, (antialias, antialias), known_filters, by.max_support, by.copied
    )
    nowhere, of_height, of_width = np.zeros(count, np.int64), rows[:down], rows[down : down + across]
    origins = np.zeros(count, np.int64)
    if len(windows) > 0:
        _fill_windows(shapes, of_height, of_width, windows)
        for image in range(count):
            top, left, height, width = windows[image]
            stacks[image, 1], stacks[image, 2] = height, width
            # The offset in bytes from the window's first pixel to the image's first pixel.
            origins[image] = -(top * width + left) * shapes[image, 2] * by.stacks.itemsize
    place = descriptors, blocks, origins, nowhere, stacks, of_height, of_width
    shared, kept, strip, taps, channels = fill_descriptors(*place, by.stacks)
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
    """Plan how a window of each image is resized.

    Args:
        shapes: the shape (H, W, C) of each image, in rows; none may be empty.
        windows: the window (y, x, height, width) of each image, in rows.
        size: the size (h, w) of all results; -1: the image's extent.
        filters, antialias: as in :func:`image_rules`.
        known_filters, max_support, rows: as in :func:`plan_tables`.
        stacks: filled with the shapes (1, H, W, C) of the images as stacks.
        results: filled with the shapes (h, w, C) of the results.

    Returns:
        The results of :func:`plan_tables`; zeros if a result is too large.
    """
    count = len(shapes)
    sizes, starts, ends = np.empty((count, 2), np.int64), np.empty((count, 2)), np.empty((count, 2))
    for image in range(count):
        for axis in range(2):
            sizes[image, axis] = shapes[image, axis] if size[axis] == -1 else size[axis]
            if sizes[image, axis] >= _MAX_EXTENT:
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
