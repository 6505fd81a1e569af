"""How far images are displaced."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Wave(NamedTuple):
    """A wave of displacements: in pixels, radians a pixel, radians."""

    amplitude: float
    frequency: float
    phase: float


def water_displacements(height: int, width: int, wave_x: Wave, wave_y: Wave) -> tuple[np.ndarray, np.ndarray]:
    """How far waves displace each row in x and each column in y, in float32."""
    x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
    across = np.float32(wave_x.amplitude) * np.sin(np.float32(wave_x.frequency) * y + np.float32(wave_x.phase))
    down = np.float32(wave_y.amplitude) * np.cos(np.float32(wave_y.frequency) * x + np.float32(wave_y.phase))
    return across, down
