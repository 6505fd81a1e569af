"""`hue`: rotates the hue."""

from __future__ import annotations

import numpy as np

from penstock.kernels.colour import hue_saturation_value
from penstock.operators.color._linear import DTYPE, HUE, IMAGE_TYPE, THREE_CHANNELS, ColourMatrixOperator
from penstock.schema import Equivalent, Samples, Schema, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class Hue(ColourMatrixOperator):
    """Rotates the hue."""

    keeps_frame_shape = True
    schema = Schema(
        name="Hue",
        inputs=(THREE_CHANNELS,),
        arguments=(DTYPE, HUE, IMAGE_TYPE),
        sequences=True,
        volumetric=True,
        shown=(on_photo(hue=90.0),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.functional.adjust_hue",
                "It turns hue in HSV, as a fraction of the circle; here a linear transform approximates that, in "
                "degrees.",
            ),
        ),
    )

    def linear_maps(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        return hue_saturation_value(samples.scalars("hue"), np.ones(1), np.ones(1)), np.zeros((1, 3))
