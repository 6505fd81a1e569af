"""Compute the windows of many images in one call."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel


@kernel
def fill_crops(
    shapes: np.ndarray,
    wanted: np.ndarray,
    positions: np.ndarray,
    rounding: int,
    anchors: np.ndarray,
    extents: np.ndarray,
) -> int:
    """Compute windows from extents and relative positions.

    Args:
        shapes: the shapes of the samples, one row each.
        wanted: the extent in each dimension, which is truncated; if it is then below 1, or does not fit in 32 bits, the whole dimension is
            used. One row for each sample, or one for all.
        positions: relative positions in each dimension, from 0 to 1. One row for each sample, or one for all.
        rounding: how anchors are rounded: an index of :data:`penstock.kernels.windows.ROUNDINGS`.
        anchors, extents: filled with the starts and the extents of the windows.

    Returns:
        The flat index of the first position that is out of range; -1 if there is none.
    """
    count, axes = shapes.shape
    for row in range(count):
        own_extents, own_positions = min(row, len(wanted) - 1), min(row, len(positions) - 1)
        for axis in range(axes):
            size, extent = shapes[row, axis], wanted_extent(wanted[own_extents, axis])
            if extent <= 0:
                anchors[row, axis], extents[row, axis] = 0, size
                continue
            position = positions[own_positions, axis]
            if not 0 <= position <= 1:
                return row * axes + axis
            anchor = position * np.float64(size - extent)
            if rounding == 1 or (rounding == 2 and anchor < 0):
                anchor = np.trunc(anchor)
            elif rounding == 2:
                anchor = np.rint(anchor)
            elif rounding == 3:
                anchor = np.floor(anchor)
            elif anchor >= 0:
                anchor = np.floor(anchor + 0.5)
            else:
                anchor = np.ceil(anchor - 0.5)
            anchors[row, axis], extents[row, axis] = np.int64(anchor), extent
    return -1


@inner
def wanted_extent(extent: float) -> int:
    """Return the extent without its fraction; 0 if it is negative or does not fit in 32 bits, or if it is NaN."""
    return int(extent) if 0 <= extent < 2**31 else 0


@kernel
def first_outside(shapes: np.ndarray, anchors: np.ndarray, extents: np.ndarray, trims: bool) -> int:
    """Return the first sample whose window reaches outside of the sample, or -1 if there is none; with ``trims``, clip windows instead."""
    count, axes = shapes.shape
    for row in range(count):
        for axis in range(axes):
            size, start = shapes[row, axis], anchors[row, axis]
            stop = start + extents[row, axis]
            if start >= 0 and stop <= size:
                continue
            if not trims:
                return row
            start = min(max(start, 0), size)
            anchors[row, axis], extents[row, axis] = start, max(min(stop, size), start) - start
    return -1


@kernel
def _whole(value: float) -> float:
    """Return the nearest integer; round halves away from zero."""
    return float(np.floor(value + 0.5) if value >= 0 else np.ceil(value - 0.5))


@kernel
def _part(fraction: float, size: float, in_single: bool) -> float:
    """Return ``fraction`` times an extent, computed in single or double precision."""
    return float(np.float32(fraction) * np.float32(size)) if in_single else fraction * size


@kernel
def fill_boxes(
    shapes: np.ndarray,
    axes: np.ndarray,
    starts: np.ndarray,
    relative_starts: bool,
    ends: np.ndarray,
    relative_ends: bool,
    from_start: bool,
    in_single: bool,
    anchors: np.ndarray,
    extents: np.ndarray,
) -> tuple[float, float] | None:
    """Compute boxes from their starts and ends.

    Args:
        shapes: the shapes of the samples, one row each.
        axes: the dimensions to which the columns of ``starts`` and ``ends`` belong.
        starts, ends: one row for each sample, or one for all; one column for each axis, or one for all.
        relative_starts, relative_ends: whether the starts, or the ends, are fractions of the samples' extents.
        from_start: whether ends are relative to the starts.
        in_single: whether to multiply fractions in single precision. If all three flags above are set, ends are nevertheless computed in
            double precision, from the sum of both fractions.
        anchors, extents: filled with the starts and the extents of the boxes, in the dimensions ``axes``.

    Returns:
        The start and end of the first invalid box, or None.
    """
    for row in range(len(shapes)):
        own_starts, own_ends = starts[min(row, len(starts) - 1)], ends[min(row, len(ends) - 1)]
        for number in range(len(axes)):
            axis = axes[number]
            size = np.float64(shapes[row, axis])
            start, end = own_starts[min(number, own_starts.size - 1)], own_ends[min(number, own_ends.size - 1)]
            if from_start and relative_starts and relative_ends:
                end = (start + end) * size
                start = _part(start, size, in_single)
            else:
                if relative_starts:
                    start = _part(start, size, in_single)
                if relative_ends:
                    end = _part(end, size, in_single)
                if from_start:
                    end += start
            if not start <= end or not np.isfinite(end - start):
                return start, end
            anchors[row, axis] = np.int64(_whole(start))
            extents[row, axis] = np.int64(_whole(end)) - anchors[row, axis]
    return None
