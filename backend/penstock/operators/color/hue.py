"""`hue`: rotates the hue."""

from __future__ import annotations

import numpy as np

from penstock.data_types import RGB
from penstock.kernels.colour import hue_saturation_value
from penstock.operators.color._linear import ColourMatrixOperator
from penstock.schema import Argument, Equivalent, Input, Sample, Schema, register_operator
from penstock.schema.samples import on_photo


@register_operator
class Hue(ColourMatrixOperator):
    """Rotates the hue."""

    keeps_frame_shape = True
    schema = Schema(
        name="Hue",
        inputs=(
            Input(
                "input",
                ("HWC", "FHWC", "DHWC"),
                doc="Images of three channels.",
            ),
        ),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument("hue", "float", 0.0, "Change of hue, in degrees.", tensor=True, per_frame=True),
            Argument("image_type", "DALIImageType", RGB, "Colour space of the input."),
        ),
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

    def plan(self, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
        return hue_saturation_value(sample["hue"], 1.0, 1.0), np.zeros(3)
