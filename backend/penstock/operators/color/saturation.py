"""`saturation`: scales the saturation."""

from __future__ import annotations

import numpy as np

from penstock.kernels.colour import hue_saturation_value
from penstock.operators.color._linear import DTYPE, IMAGE_TYPE, SATURATION, THREE_CHANNELS, ColourMatrixOperator
from penstock.schema import Equivalent, Samples, Schema, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class Saturation(ColourMatrixOperator):
    """Scales the saturation."""

    keeps_frame_shape = True
    schema = Schema(
        name="Saturation",
        inputs=(THREE_CHANNELS,),
        arguments=(DTYPE, IMAGE_TYPE, SATURATION),
        sequences=True,
        volumetric=True,
        shown=(on_photo(saturation=2.5),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.functional.adjust_saturation",
                "It rounds the grey that it blends with, so values differ by up to 2.",
            ),
            Equivalent(
                "PIL.ImageEnhance.Color", "It rounds the grey that it blends with, so values differ by up to 2."
            ),
        ),
    )

    def linear_maps(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        return hue_saturation_value(np.zeros(1), samples.scalars("saturation"), np.ones(1)), np.zeros((1, 3))
