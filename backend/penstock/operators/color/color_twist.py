"""`color_twist`: hue, saturation, contrast and brightness in one operator."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, FLOAT16
from penstock.kernels.colour import hue_saturation_value
from penstock.operators.color._linear import (
    BRIGHTNESS,
    DTYPE,
    HUE,
    IMAGE_TYPE,
    SATURATION,
    THREE_CHANNELS,
    ColourMatrixOperator,
)
from penstock.schema import Argument, Equivalent, Samples, Schema, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class ColorTwist(ColourMatrixOperator):
    """``brightness * (contrast * M x + (1 - contrast) * center)``, where M rotates the hue and scales the saturation."""

    keeps_frame_shape = True
    schema = Schema(
        name="ColorTwist",
        inputs=(THREE_CHANNELS,),
        arguments=(
            BRIGHTNESS,
            Argument(
                "contrast",
                "float",
                1.0,
                "Factor of the distance from the middle of the range; 1 changes nothing.",
                tensor=True,
                per_frame=True,
            ),
            DTYPE,
            HUE,
            IMAGE_TYPE,
            SATURATION,
        ),
        sequences=True,
        volumetric=True,
        shown=(on_photo(brightness=1.2, contrast=1.3, saturation=1.5, hue=30.0),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.ColorJitter",
                "It draws the factors itself and rounds after each step; here they are arguments, and one matrix "
                "does all.",
            ),
        ),
    )

    def linear_maps(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        brightness, contrast = (np.asarray(samples.scalars(name), np.float32) for name in ("brightness", "contrast"))
        matrices = hue_saturation_value(
            samples.scalars("hue"), samples.scalars("saturation"), np.ones(1), brightness * contrast
        )
        centre = np.float32(0.5 if samples.workspace.inputs[0].dtype in (FLOAT, FLOAT16) else 128.0)
        offsets = (centre - centre * contrast) * brightness
        return matrices, offsets[:, None].repeat(3, axis=1)
