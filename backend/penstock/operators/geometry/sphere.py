"""`sphere`: images on a ball."""

from __future__ import annotations

import numpy as np

from penstock.kernels.displacement import sphere_maps
from penstock.operators.geometry._displacement import ARGUMENTS, INPUTS, DisplacementOperator
from penstock.schema import Schema, register_operator


@register_operator
class Sphere(DisplacementOperator):
    """Bulges images as if they were on a ball."""

    schema = Schema(name="Sphere", inputs=INPUTS, arguments=ARGUMENTS)
    kind = "Ball"

    def maps(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return sphere_maps(height, width)
