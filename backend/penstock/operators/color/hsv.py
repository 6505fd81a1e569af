"""`hsv`: hue, saturation and value."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8
from penstock.kernels.colour import hue_saturation_value
from penstock.operators.color._linear import HUE, SATURATION, THREE_CHANNELS, ColourMatrixOperator
from penstock.schema import Argument, Equivalent, Samples, Schema, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class Hsv(ColourMatrixOperator):
    """Rotates the hue, and scales saturation and value."""

    keeps_frame_shape = True
    schema = Schema(
        name="Hsv",
        inputs=(THREE_CHANNELS,),
        arguments=(
            Argument("dtype", "DALIDataType", UINT8, "Type of the output."),
            HUE,
            SATURATION,
            Argument("value", "float", 1.0, "Factor of brightness.", tensor=True, per_frame=True),
        ),
        sequences=True,
        volumetric=True,
        shown=(on_photo(hue=-60.0, saturation=1.5, value=1.1),),
        equivalents=(
            Equivalent(
                "cv2.cvtColor", "To HSV, there to be changed, and back; here one linear transform approximates that."
            ),
        ),
    )

    def linear_maps(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        matrices = hue_saturation_value(*(samples.scalars(name) for name in ("hue", "saturation", "value")))
        return matrices, np.zeros((1, 3))
