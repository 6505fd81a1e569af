"""Where regions of images are copied from and to."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import brief, inner

# Samples with more regions are not searched for overlaps: all pairs would be compared.
MAX_REGIONS_WITHOUT_SEARCH = 16


@brief
def first_outside(anchors: np.ndarray, extents: np.ndarray, bounds: np.ndarray) -> int:
    """Return the first region that is not within its bounds; -1 if all are.

    Args:
        anchors, extents: (y, x) and (height, width) of each region, int64 of shape (regions, 2).
        bounds: (height, width, ...) of each region's image, int64.
    """
    for region in range(len(anchors)):
        for axis in range(2):
            anchor, extent = anchors[region, axis], extents[region, axis]
            if anchor < 0 or extent < 0 or anchor + extent > bounds[region, axis]:
                return region
    return -1


@inner
def _cover(places: np.ndarray, extents: np.ndarray, height: int, width: int) -> bool:
    """Return whether regions are known to fill an image: together they have its area, and none overlaps another."""
    area = 0
    for region in range(len(places)):
        area += extents[region, 0] * extents[region, 1]
    if area != height * width or len(places) > MAX_REGIONS_WITHOUT_SEARCH:
        return False
    for one in range(len(places)):
        for other in range(one):
            shared = True
            for axis in range(2):
                begin = max(places[one, axis], places[other, axis])
                end = min(places[one, axis] + extents[one, axis], places[other, axis] + extents[other, axis])
                shared = shared and begin < end
            if shared:
                return False
    return True


@brief
def fill_blocks(
    counts: np.ndarray,
    sources: np.ndarray,
    widths: np.ndarray,
    anchors: np.ndarray,
    extents: np.ndarray,
    places: np.ndarray,
    targets: np.ndarray,
    shapes: np.ndarray,
    itemsize: int,
    table: np.ndarray,
) -> bool:
    """Fill the table of the blocks to copy; return whether they are known to fill all outputs.

    Args:
        counts: the number of each sample's regions.
        sources, widths: the address and the width of each region's source.
        anchors, extents, places: (y, x) of each region in its source, its (height, width), and its (y, x) in the output.
        targets: the address of each output.
        shapes: (height, width, channels) of each output.
        itemsize: bytes of an element.
        table: int64 with a row for each region, whose columns are the fields of ``blocks.Blocks``; filled.
    """
    first, covered = 0, True
    for sample in range(len(counts)):
        height, width, channels = shapes[sample]
        pixel, end = channels * itemsize, first + counts[sample]
        for region in range(first, end):
            step_in, step_out = widths[region] * pixel, width * pixel
            table[region, 0] = sources[region] + anchors[region, 0] * step_in + anchors[region, 1] * pixel
            table[region, 1] = targets[sample] + places[region, 0] * step_out + places[region, 1] * pixel
            table[region, 2], table[region, 3] = step_in, step_out
            table[region, 4], table[region, 5] = extents[region, 0], extents[region, 1] * pixel
        covered = covered and _cover(places[first:end], extents[first:end], height, width)
        first = end
    return covered
