"""`sphere`: a bulge effect."""

from __future__ import annotations

import numpy as np

from penstock.operators.geometry._displacement import ARGUMENTS, INPUTS, TO_CENTRES, DisplacementOperator
from penstock.schema import Schema, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class Sphere(DisplacementOperator):
    """Distorts images as if wrapped around a sphere."""

    schema = Schema(
        name="Sphere",
        inputs=INPUTS,
        arguments=ARGUMENTS,
        shown=(on_photo(),),
    )
    kind = "Ball"

    def displace(self, source: np.ndarray, linear: bool, target: np.ndarray, fill: float) -> None:
        from penstock.kernels.cpu.remap import displace_on_ball

        displace_on_ball(source, TO_CENTRES, linear, target, fill)
