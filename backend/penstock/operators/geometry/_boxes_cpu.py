"""Mirroring of bounding boxes."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.parts import elements_at


@kernel
def flip_boxes(
    sources: np.ndarray,
    targets: np.ndarray,
    volumes: np.ndarray,
    directions: np.ndarray,
    ltrb: bool,
    begin: int,
    end: int,
) -> None:
    """Mirror boxes whose coordinates are fractions of the image's extents.

    Args:
        sources, targets: the addresses of each sample's boxes and of the results, float32.
        volumes: the number of elements of each sample, int64.
        directions: int64: for each sample, 1 for horizontally plus 2 for vertically.
        ltrb: boxes are left, top, right, bottom; otherwise left, top, width, height.
        begin, end: the samples to compute.
    """
    one = np.float32(1)
    for sample in range(begin, end):
        volume = volumes[sample]
        boxes, target = elements_at(sources[sample], volume, one), elements_at(targets[sample], volume, one)
        for first in range(0, volume, 4):
            for axis in range(2):
                # As in DALI, extents become edges and then extents again: they are rounded twice, whether mirrored or not.
                low, high = boxes[first + axis], boxes[first + axis + 2]
                if not ltrb:
                    high += low
                if directions[sample] >> axis & 1:
                    low, high = one - high, one - low
                target[first + axis] = low
                target[first + axis + 2] = high if ltrb else high - low
