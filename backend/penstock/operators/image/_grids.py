"""Regular grids of squares, rotated and shifted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Grid(NamedTuple):
    """A grid of tiles, each with a square in its corner. Lengths are in units of tiles, in single precision.

    Pixel (x, y) has the coordinates ``x * cosine - y * sine - shift_x`` and ``x * sine + y * cosine - shift_y`` in the
    grid. It is in a square if the fractional parts of both coordinates are less than ``ratio``.
    """

    cosine: np.float32
    sine: np.float32
    shift_x: np.float32
    shift_y: np.float32
    ratio: np.float32


def grid_of(angle: float, tile: int, shift_x: float, shift_y: float, ratio: float) -> Grid:
    """Return a grid rotated by ``angle`` radians; ``tile``, the side of a tile, and the shifts are in pixels."""
    values = (math.cos(angle) / tile, math.sin(angle) / tile, shift_x / tile, shift_y / tile, ratio)
    return Grid(*map(np.float32, values))
