"""The descriptors from which the GPU resamples images, for many images in one call."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel


@inner
def _needed(columns: int, step: float, slack: int, size: int, channels: int, rounding: int) -> int:
    """The most elements of an input row that neighbouring output columns depend on."""
    return min(np.int64(math.ceil(step * (columns - 1))) + slack, size) * channels + rounding


@inner
def _segment(
    count: int, step: float, taps: int, size: int, channels: int, room: int, rounding: int, few: int
) -> tuple[int, int]:
    """Output columns per block, and an upper bound of the elements of a row that a block needs."""
    # The starts of columns are rounded, at worst in single precision.
    slack = taps + 2 + (size >> 20)
    whole = _needed(count, step, slack, size, channels, rounding)
    if whole <= room:
        return count, whole
    overlap = taps * channels + rounding
    if overlap > room // 2:
        # The taps of a few columns fill the row: it is refilled for every few columns.
        segment = few
    else:
        parts = -(-whole // (room - overlap))
        segment = max(count // parts, 1)
    return segment, _needed(segment, step, slack, size, channels, rounding)


@inner
def _together(row: int, address: int, itemsize: int, most: int) -> int:
    """Elements that can be read at once, from the elements of a row and the address of the first."""
    while most > 1 and (row % most != 0 or address % (most * itemsize) != 0):
        most = 4 if most > 4 else 1
    return most


@kernel
def plan_resampling(
    rows: np.ndarray,
    blocks: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    shapes: np.ndarray,
    down: np.ndarray,
    across: np.ndarray,
    channels_out: int,
    itemsize: int,
    most: int,
    room: int,
    many_rows: int,
    few: int,
) -> tuple[int, int, int]:
    """Fills the descriptors, and cuts rows into segments.

    Args:
        rows: to fill, all but ``planar``, ``normalize``, ``normalization``, ``shift`` and ``fill``.
        blocks: to fill: the blocks of each image.
        sources, targets: addresses.
        shapes: of stacks of images (n, H, W, C), in rows.
        down, across: the descriptors of the tables of heights and widths: one for all images, or one for each.
        channels_out: channels of the targets; 0: those of the sources.
        itemsize: of a source's elements.
        most: the most elements that are read at once.
        room: the most floats of an input row that a block keeps; a quarter of them with fewer output rows than
            ``many_rows``.
        few: columns per block where a block refills its row.

    Returns:
        The floats of a row and of sums that a block needs, and the number of channels, 0 if images differ in it.
    """
    count, rounding = len(rows), 2 * (most - 1)
    lines = 0
    for i in range(count):
        lines += shapes[i, 0] * down[min(i, len(down) - 1)].outputs
    if lines < many_rows:
        room //= 4
    capacity, sums, common = 4, 0, shapes[0, 3]
    for i in range(count):
        row, vertical, horizontal = rows[i], down[min(i, len(down) - 1)], across[min(i, len(across) - 1)]
        planes, height, width, channels = shapes[i, 0], shapes[i, 1], shapes[i, 2], shapes[i, 3]
        out_channels = channels_out if channels_out else channels
        segment, widest = _segment(
            np.int64(horizontal.outputs),
            abs(horizontal.step),
            np.int64(horizontal.used),
            width,
            channels,
            room,
            rounding,
            few,
        )
        capacity = max(capacity, min(widest, room))
        if widest > room:
            sums = max(sums, segment * channels)
        if channels != common:
            common = 0
        row.source, row.target = sources[i], targets[i]
        row.source_plane = height * width * channels
        row.target_plane = np.int64(vertical.outputs) * horizontal.outputs * out_channels
        row.height, row.width, row.channels = height, width, channels
        row.out_height, row.out_width, row.out_channels = vertical.outputs, horizontal.outputs, out_channels
        row.v_starts, row.v_weights, row.v_taps = vertical.starts, vertical.weights, vertical.used
        row.h_starts, row.h_weights, row.h_taps = horizontal.starts, horizontal.weights, horizontal.used
        row.segment, row.segments = segment, -(-horizontal.outputs // segment)
        row.together = _together(width * channels, np.int64(sources[i]), itemsize, most)
        blocks[i] = planes * vertical.outputs * row.segments
    return -(-capacity // most) * most, sums, common
