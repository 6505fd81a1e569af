"""Where displaced images take their pixels from: maps of x and y, in coordinates whose origin is a pixel's corner."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Wave(NamedTuple):
    """A wave of displacements: in pixels, radians a pixel, radians."""

    amplitude: float
    frequency: float
    phase: float


def sphere_maps(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The image as on a ball: distances from the middle are squared, in units of half the longer side."""
    middle_x, middle_y = width / 2, height / 2
    x = np.arange(width, dtype=np.float32)[None] + np.float32(0.5 - middle_x)
    y = np.arange(height, dtype=np.float32)[:, None] + np.float32(0.5 - middle_y)
    distance = np.sqrt(x * x + y * y) / np.float32(max(int(max(middle_x, middle_y)), 1))
    return np.float32(middle_x) + distance * x, np.float32(middle_y) + distance * y


def water_displacements(height: int, width: int, wave_x: Wave, wave_y: Wave) -> tuple[np.ndarray, np.ndarray]:
    """How far waves displace each row in x and each column in y, in float32."""
    x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
    across = np.float32(wave_x.amplitude) * np.sin(np.float32(wave_x.frequency) * y + np.float32(wave_x.phase))
    down = np.float32(wave_y.amplitude) * np.cos(np.float32(wave_y.frequency) * x + np.float32(wave_y.phase))
    return across, down


def water_maps(height: int, width: int, wave_x: Wave, wave_y: Wave) -> tuple[np.ndarray, np.ndarray]:
    """The image as under waves: x is displaced by a sine of y, y by a cosine of x."""
    across, down = water_displacements(height, width, wave_x, wave_y)
    x, y = np.arange(width, dtype=np.float32)[None], np.arange(height, dtype=np.float32)[:, None]
    return x + across[:, None], y + down[None]
