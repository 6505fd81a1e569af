"""Drawing the outlines of boxes on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.memory import copy_bytes
from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.parts import bytes_at


@kernel
def draw_outlines(edges: np.ndarray, colours: np.ndarray, thickness: int, image: np.ndarray) -> None:
    """Draw the outlines of boxes; later boxes cover earlier ones.

    Args:
        edges: left, top, right, bottom of each box, between pixels, int64 of shape (n, 4); lines are drawn inside the box.
        colours: uint8 of shape (n, channels).
        thickness: the lines' thickness, in pixels.
        image: uint8 of shape (height, width, channels).
    """
    height, width, channels = image.shape
    for number in range(len(edges)):
        left, top, right, bottom = edges[number]
        for y in range(max(top, 0), min(bottom, height)):
            # Rows between the two horizontal lines have a part of a vertical line at each end.
            is_line = y < top + thickness or y >= bottom - thickness
            for end in range(1 if is_line else 2):
                first = right - thickness if end else left
                last = right if end or is_line else left + thickness
                for x in range(max(first, left, 0), min(last, right, width)):
                    for channel in range(channels):
                        image[y, x, channel] = colours[number, channel]


@kernel
def draw_outlines_of_batch(
    images: np.ndarray, edges: np.ndarray, colours: np.ndarray, thickness: int, begin: int, end: int
) -> None:
    """Copy images and draw the outlines of the boxes of each.

    Args:
        images: int64 of shape (images, 7): the addresses to copy from and to, height, width, channels, and start and end of the
            image's boxes among all boxes.
        edges, colours, thickness: as for :func:`draw_outlines`, for the boxes of all images.
        begin, end: the range of images to draw on.
    """
    for number in range(begin, end):
        source, target, height, width, channels, first, last = images[number]
        copy_bytes(target, source, height * width * channels)
        image = bytes_at(target, height * width * channels).reshape((height, width, channels))
        draw_outlines(edges[first:last], colours[first:last], thickness, image)
