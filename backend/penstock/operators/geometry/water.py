"""`water`: images under waves."""

from __future__ import annotations

import numpy as np

from penstock.kernels.displacement import Wave, water_displacements
from penstock.operators.geometry._displacement import ARGUMENTS, INPUTS, TO_CENTRES, DisplacementOperator
from penstock.schema import Argument, Schema, register_operator


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
            Argument("freq_x", "float", 0.049087, "Frequency of the displacement in x, in radians for each row."),
            Argument("freq_y", "float", 0.049087, "Frequency of the displacement in y, in radians for each column."),
            Argument("phase_x", "float", 0.0, "Phase of the displacement in x, in radians."),
            Argument("phase_y", "float", 0.0, "Phase of the displacement in y, in radians."),
        ),
    )
    kind = "Waves"

    def displace(self, source: np.ndarray, linear: bool, target: np.ndarray, fill: float) -> None:
        from penstock.kernels.cpu.remap import displace_by_waves

        displace_by_waves(source, *self.waves(*source.shape[:2]), TO_CENTRES, linear, target, fill)

    def waves(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return water_displacements(height, width, self._wave("x"), self._wave("y"))

    def _wave(self, axis: str) -> Wave:
        return Wave(*(self.args[f"{part}_{axis}"] for part in ("ampl", "freq", "phase")))
