"""The parts of long images that Gemma 3 sees in addition to the whole image ("pan and scan")."""

from __future__ import annotations

import math
from typing import NamedTuple

Box = tuple[int, int, int, int]
"""Left, top, right, bottom."""


class PanAndScan(NamedTuple):
    """The parameters that determine whether and how an image is cut into parts.

    Attributes:
        min_ratio: the minimum ratio of the longer side to the shorter side of images that are cut.
        max_crops: the maximum number of parts.
        min_crop: the minimum side of a part, in pixels; images whose parts would be smaller are not cut.
    """

    min_ratio: float
    max_crops: int
    min_crop: int

    def boxes(self, height: int, width: int) -> list[Box]:
        """Return the boxes of the whole image and of its parts, which follow each other along the longer side.

        Raises:
            ValueError: a part would be empty.
        """
        longer, shorter = max(height, width), min(height, width)
        whole = (0, 0, width, height)
        if not shorter or longer / shorter < self.min_ratio:
            return [whole]
        count = min(longer // self.min_crop, math.floor(longer / shorter + 0.5))
        count = min(max(count, 2), self.max_crops)
        extent = math.ceil(longer / count)
        if min(extent, shorter) < self.min_crop:
            return [whole]
        starts = range(0, count * extent, extent)
        if starts[-1] >= longer:
            raise ValueError(
                f"An image of {width} x {height} pixels cannot be cut into {count} parts of {extent} pixels"
            )
        spans = [(start, min(start + extent, longer)) for start in starts]
        parts = [(a, 0, b, height) if width >= height else (0, a, width, b) for a, b in spans]
        return [whole, *parts]
