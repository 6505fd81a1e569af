"""`water`: a wave effect."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penstock.operators.geometry._displacement import ARGUMENTS, INPUTS, TO_CENTRES, DisplacementOperator
from penstock.schema import Argument, Schema, register_operator
from penstock.schema.example_data import on_photo

# The frequency of a wave with a length of 128 pixels.
_FREQUENCY = 2 * math.pi / 128


class _Wave(NamedTuple):
    """A wave of displacements: amplitude in pixels, frequency in radians per pixel, phase in radians."""

    amplitude: float
    frequency: float
    phase: float


@register_operator
class Water(DisplacementOperator):
    """Displaces pixels by ``ampl_x * sin(freq_x * y + phase_x)`` and ``ampl_y * cos(freq_y * x + phase_y)``."""

    schema = Schema(
        name="Water",
        inputs=INPUTS,
        arguments=(
            *ARGUMENTS,
            Argument("ampl_x", "float", 10.0, "Amplitude of the displacement in x, in pixels."),
            Argument("ampl_y", "float", 10.0, "Amplitude of the displacement in y, in pixels."),
            Argument("freq_x", "float", _FREQUENCY, "Frequency of the displacement in x, in radians per row."),
            Argument("freq_y", "float", _FREQUENCY, "Frequency of the displacement in y, in radians per column."),
            Argument("phase_x", "float", 0.0, "Phase of the displacement in x, in radians."),
            Argument("phase_y", "float", 0.0, "Phase of the displacement in y, in radians."),
        ),
        shown=(on_photo(ampl_x=6.0, ampl_y=6.0, freq_x=0.08, freq_y=0.08),),
    )
    kind = "Waves"

    def displace(self, source: np.ndarray, linear: bool, target: np.ndarray, fill: float) -> None:
        from penstock.kernels.cpu.remap import displace_by_waves

        displace_by_waves(source, *self.waves(*source.shape[:2]), TO_CENTRES, linear, target, fill)

    def waves(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return _displacements(height, width, self._wave("x"), self._wave("y"))

    def _wave(self, axis: str) -> _Wave:
        return _Wave(*(self.args[f"{part}_{axis}"] for part in ("ampl", "freq", "phase")))


def _displacements(height: int, width: int, wave_x: _Wave, wave_y: _Wave) -> tuple[np.ndarray, np.ndarray]:
    """Return the displacement in x of each row, and that in y of each column, float32."""
    x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
    across = np.float32(wave_x.amplitude) * np.sin(np.float32(wave_x.frequency) * y + np.float32(wave_x.phase))
    down = np.float32(wave_y.amplitude) * np.cos(np.float32(wave_y.frequency) * x + np.float32(wave_y.phase))
    return across, down
