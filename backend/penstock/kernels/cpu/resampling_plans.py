"""Fill the descriptors that tell a GPU how to resample images, for many images in one call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.options import brief, inner


class StripLimits(NamedTuple):
    """Limits for thread blocks that compute strips of several output rows.

    Attributes:
        least_blocks: the minimum number of blocks.
        least_rows, most_rows: the minimum and maximum number of rows of a strip.
        most_kept: the maximum number of rows of sums that a block holds in shared memory.
        least_columns: the minimum number of columns of a block.
        read_rows: the number of rows that are read before they are added.
        own_bytes: the number of bytes of a block's shared memory besides rows, tables and sums.
        most_shared: the maximum number of bytes of a block's shared memory.
    """

    least_blocks: int
    least_rows: int
    most_rows: int
    most_kept: int
    least_columns: int
    read_rows: int
    own_bytes: int
    most_shared: int


class RowLimits(NamedTuple):
    """Limits for thread blocks that compute output rows one by one.

    Attributes:
        together: the maximum number of elements that are read in one load.
        room: the maximum number of floats of an input row that a block holds in shared memory; a quarter of that if there are fewer output
            rows than ``many_rows``.
        many_rows: the minimum number of output rows for which all of ``room`` is used.
        columns: the number of columns after which a block whose ``room`` is too small refills its row.
    """

    together: int
    room: int
    many_rows: int
    columns: int


class StackRules(NamedTuple):
    """Settings for all stacks of images with elements of the same type.

    Attributes:
        channels: the results' number of channels; 0: the number that the sources have.
        planar: whether results are stored as CHW.
        normalize: whether results are normalized.
        shift: the number that normalization adds.
        fill: the value of channels that the sources lack.
        pitch: the number of elements of an input row that a block holds while it computes a strip; 0: no strips are computed.
        threads: the number of threads per block.
        itemsize: the size in bytes of a source's elements.
        strips: the limits for strips.
        rows: the limits for single rows.
    """

    channels: int
    planar: bool
    normalize: bool
    shift: float
    fill: float
    pitch: int
    threads: int
    itemsize: int
    strips: StripLimits
    rows: RowLimits

    def record(self) -> np.ndarray:
        """Return these rules as a record for kernels: one :data:`STACK_RULES`."""
        return np.array([self], STACK_RULES)


def _integers(names: Sequence[str]) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


STACK_RULES = np.dtype(
    [
        ("channels", np.int64),
        ("planar", np.int64),
        ("normalize", np.int64),
        ("shift", np.float64),
        ("fill", np.float64),
        ("pitch", np.int64),
        ("threads", np.int64),
        ("itemsize", np.int64),
        ("strips", _integers(StripLimits._fields)),
        ("rows", _integers(RowLimits._fields)),
    ]
)
"""The type of a record that holds :class:`StackRules`."""
PlannedStacks = tuple[int, int, int, int, int]
"""The type of the results of :func:`plan_stacks`."""


@inner
def _needed(columns: int, step: float, slack: int, size: int, channels: int, rounding: int) -> int:
    """Return the maximum number of elements of an input row on which ``columns`` adjacent output columns depend."""
    return min(math.ceil(step * (columns - 1)) + slack, size) * channels + rounding


@inner
def _segment(
    count: int, step: float, taps: int, size: int, channels: int, room: int, rounding: int, few: int
) -> tuple[int, int]:
    """Return the number of output columns of a block, and an upper bound of the number of elements of an input row that the block needs."""
    # The slack includes the rounding errors of windows' starts, which may be computed in single precision.
    slack = taps + 2 + (size >> 20)
    whole = _needed(count, step, slack, size, channels, rounding)
    if whole <= room:
        return count, whole
    overlap = taps * channels + rounding
    if overlap > room // 2:
        # The taps of a few columns fill all of `room`, so the block refills it after every few columns.
        segment = few
    else:
        parts = -(-whole // (room - overlap))
        segment = max(count // parts, 1)
    return segment, _needed(segment, step, slack, size, channels, rounding)


@inner
def _together(row: int, address: int, itemsize: int, most: int) -> int:
    """Return the number of elements that can be read in one load.

    ``row`` is the number of elements of a row, ``address`` that of the first element, ``most`` the maximum to return.
    """
    while most > 1 and (row % most != 0 or address % (most * itemsize) != 0):
        most = 4 if most > 4 else 1
    return most


@inner
def _describe(row: np.record, shape: np.ndarray, vertical: np.record, horizontal: np.record, rules: np.record) -> None:
    """Fill in the fields of an image's descriptor that depend on its shape, its tables, and how the result is stored."""
    height, width, channels = shape[1], shape[2], shape[3]
    row.planar, row.normalize, row.shift, row["fill"] = rules.planar, rules.normalize, rules.shift, rules["fill"]
    out_channels = rules.channels if rules.channels else channels
    row.source_plane = height * width * channels
    row.target_plane = np.int64(vertical.outputs) * horizontal.outputs * out_channels
    row.height, row.width, row.channels = height, width, channels
    row.out_height, row.out_width, row.out_channels = vertical.outputs, horizontal.outputs, out_channels
    row.v_starts, row.v_weights, row.v_taps = vertical.starts, vertical.weights, vertical.used
    row.h_starts, row.h_weights, row.h_taps = horizontal.starts, horizontal.weights, horizontal.used


@inner
def _strip_columns(count: int, step: float, taps: int, size: int, channels: int, pitch: int, most: int) -> int:
    """Return the maximum number of output columns of a block that holds ``pitch`` elements of an input row."""
    slack = taps + 2 + (size >> 20)
    columns = int(((pitch - 6) // channels - slack) / step) + 1
    return min(count, columns, most)


@inner
def _plan_strips(
    rows: np.ndarray,
    blocks: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    shapes: np.ndarray,
    down: np.ndarray,
    across: np.ndarray,
    rules: np.record,
) -> tuple[int, int, int, int]:
    """Same as ``_plan_rows``, for sources of bytes, and for blocks that compute strips of output rows.

    Returns:
        The number of rows of sums that a block holds, the maximum number of rows of a strip, the maximum number of vertical taps, and the
        maximum number of weights of columns of a block; all are 0 if the images need another kernel.
    """
    pitch, threads, limits = rules.pitch, rules.threads, rules.strips
    count, channels = len(rows), shapes[0, 3]
    none = 0, 0, 0, 0
    lines = 0
    for i in range(count):
        row, vertical, horizontal = rows[i], down[min(i, len(down) - 1)], across[min(i, len(across) - 1)]
        width, taps = shapes[i, 2], np.int64(horizontal.used)
        if shapes[i, 3] != channels or width * channels % 4 or np.int64(sources[i]) % 4:
            return none
        # The kernel requires that no input row contributes to more than two output rows.
        if (
            vertical.step < 1.0
            or vertical.direction < 0
            or vertical.used > 2.0 * vertical.step + 3.0
            or horizontal.step == 0.0
        ):
            return none
        outputs = np.int64(horizontal.outputs)
        columns = _strip_columns(outputs, abs(horizontal.step), taps, width, channels, pitch, threads)
        if columns < min(limits.least_columns, outputs):
            return none
        row.segments = -(-outputs // columns)
        row.segment = -(-outputs // row.segments)
        row.segments = -(-outputs // row.segment)
        lines += shapes[i, 0] * np.int64(vertical.outputs) * row.segments
    longest = min(lines // limits.least_blocks, limits.most_rows)
    if longest < limits.least_rows:
        return none
    kept, strip, most_taps, weights = 1, 1, 1, 1
    for i in range(count):
        row, vertical, horizontal = rows[i], down[min(i, len(down) - 1)], across[min(i, len(across) - 1)]
        own_kept = min(limits.most_kept, threads // row.segment)
        own = max(min(longest, limits.most_rows * 16 // vertical.used), 1)
        row.strip = own - own % own_kept if own > own_kept else own
        row.source, row.target = sources[i], targets[i]
        _describe(row, shapes[i], vertical, horizontal, rules)
        blocks[i] = shapes[i, 0] * -(-np.int64(vertical.outputs) // np.int64(row.strip)) * row.segments
        kept, strip = max(kept, own_kept), max(strip, int(row.strip))
        most_taps, weights = (
            max(most_taps, int(vertical.used)),
            max(weights, int(horizontal.used) * row.segment),
        )
    return kept, strip, most_taps, weights


@inner
def _plan_rows(
    rows: np.ndarray,
    blocks: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    shapes: np.ndarray,
    down: np.ndarray,
    across: np.ndarray,
    rules: np.record,
) -> tuple[int, int, int]:
    """Fill in descriptors for single rows, and divide rows into segments.

    Args:
        rows: the descriptors, filled except for ``normalization``, which stays 0.
        blocks: filled with the number of blocks of each image.
        sources, targets: the addresses of inputs and outputs.
        shapes: the shapes of stacks of images (n, H, W, C), in rows.
        down, across: the descriptors of the tables of heights and widths: one for all images, or one for each.
        rules: the settings for all images: one :data:`STACK_RULES`.

    Returns:
        The number of floats of a row and the number of sums that a block needs, and the number of channels, 0 if images have different
        ones.
    """
    itemsize, limits = rules.itemsize, rules.rows
    most, room, few = limits.together, limits.room, limits.columns
    count, rounding = len(rows), 2 * (most - 1)
    lines = 0
    for i in range(count):
        lines += shapes[i, 0] * down[min(i, len(down) - 1)].outputs
    if lines < limits.many_rows:
        room //= 4
    capacity, sums, common = 4, 0, shapes[0, 3]
    for i in range(count):
        row, vertical, horizontal = rows[i], down[min(i, len(down) - 1)], across[min(i, len(across) - 1)]
        planes, width, channels = shapes[i, 0], shapes[i, 2], shapes[i, 3]
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
        _describe(row, shapes[i], vertical, horizontal, rules)
        row.segment, row.segments = segment, -(-horizontal.outputs // segment)
        row.together = _together(width * channels, np.int64(sources[i]), itemsize, most)
        blocks[i] = planes * vertical.outputs * row.segments
    return -(-capacity // most) * most, sums, common


@inner
def _strip_memory(kept: int, rows: int, taps: int, weights: int, pitch: int, limits: np.record) -> int:
    """Return the number of bytes of shared memory that a block needs to compute a strip."""
    chunks = rows * -(-taps // limits.read_rows) + 1
    return 4 * kept * pitch + limits.own_bytes + 8 * (rows * taps + chunks) + 4 * (4 * rows + weights)


@inner
def fill_descriptors(
    rows: np.ndarray,
    blocks: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    shapes: np.ndarray,
    down: np.ndarray,
    across: np.ndarray,
    rules: np.record,
) -> PlannedStacks:
    """Same as :func:`plan_stacks`, but ``rules`` is the :data:`STACK_RULES` record itself."""
    if rules.pitch > 0:
        limits = rules.strips
        kept, strip, taps, weights = _plan_strips(rows, blocks, sources, targets, shapes, down, across, rules)
        if kept > 0:
            shared = _strip_memory(kept, strip, taps, weights, rules.pitch, limits)
            if shared <= limits.most_shared:
                return shared, kept, strip, taps, shapes[0, 3]
    capacity, sums, common = _plan_rows(rows, blocks, sources, targets, shapes, down, across, rules)
    return 4 * (capacity + sums), 0, capacity, 0, common


@brief
def plan_stacks(
    rows: np.ndarray,
    blocks: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    shapes: np.ndarray,
    down: np.ndarray,
    across: np.ndarray,
    rules: np.ndarray,
) -> PlannedStacks:
    """Fill in descriptors: in strips of output rows if possible, otherwise row by row.

    Args:
        rows: the descriptors, filled except for ``normalization``, which stays 0.
        blocks: filled with the number of blocks of each image.
        sources, targets: the addresses of inputs and outputs.
        shapes: the shapes of stacks of images (n, H, W, C), in rows.
        down, across: the descriptors of the tables of heights and widths: one for all images, or one for each.
        rules: the settings for all images: an array with one :data:`STACK_RULES`.

    Returns:
        For strips: the number of bytes of a block's shared memory, the number of rows of sums that a block holds, the maximum number of
        rows of a strip, the maximum number of vertical taps, and the number of channels, 0 if images have different ones. Row by row: the
        number of bytes of shared memory, 0, the number of floats of a row that a block holds, 0, and the number of channels.
    """
    return fill_descriptors(rows, blocks, sources, targets, shapes, down, across, rules[0])
