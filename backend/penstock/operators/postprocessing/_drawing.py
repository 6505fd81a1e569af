"""Helpers of operators that draw on images: colours, and coordinates between pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MAX_COORDINATE = 2.0**31
"""The limit to which coordinates are clamped, far beyond any image."""
GLYPH_WIDTH, GLYPH_HEIGHT = 9, 18
"""The width and height of a character in pixels."""


def check_colours(name: str, colours: Sequence[int]) -> None:
    """Raise ValueError unless there is at least one value, and all values are from 0 to 255."""
    if not colours or min(colours) < 0 or max(colours) > 255:
        raise ValueError(f"`{name}` must be from 0 to 255. Got: {list(colours)}")


def check_channels(name: str, colours: Sequence[int], channels: int) -> None:
    """Raise ValueError unless the values form whole colours of this many channels."""
    if not channels or len(colours) % channels:
        raise ValueError(
            f"`{name}` has {len(colours)} values, which are not whole colours for images of {channels} channels"
        )


def colours_of(colours: Sequence[int], channels: int, labels: np.ndarray) -> np.ndarray:
    """Return the colour of each label, uint8 of shape (labels, channels); labels select colours cyclically."""
    table = np.array(colours, np.uint8).reshape(-1, channels)
    return table[labels.astype(np.int64) % len(table)]


def edges_of(coordinates: np.ndarray, what: str) -> np.ndarray:
    """Return coordinates rounded to the nearest edge between pixels, halves to even: int64.

    Raises:
        ValueError: a coordinate is NaN.
    """
    coordinates = coordinates.astype(np.float64)
    if np.isnan(coordinates).any():
        raise nan_coordinate(what, int(np.argmax(np.isnan(coordinates).any(axis=1))))
    return np.rint(coordinates.clip(-MAX_COORDINATE, MAX_COORDINATE)).astype(np.int64)


def nan_coordinate(what: str, number: int) -> ValueError:
    """Return the error for a coordinate that is NaN; ``what`` and ``number`` say which shape it belongs to, such as box 2."""
    return ValueError(f"{what} {number} has a coordinate that is NaN")
