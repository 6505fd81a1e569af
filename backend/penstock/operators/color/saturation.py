"""`saturation`: scales the saturation."""

from __future__ import annotations

import numpy as np

from penstock.data_types import RGB
from penstock.kernels.colour import hue_saturation_value
from penstock.operators.color._linear import ColourMatrixOperator
from penstock.schema import Argument, Equivalent, Input, Sample, Schema, register_operator
from penstock.schema.samples import on_photo


@register_operator
class Saturation(ColourMatrixOperator):
    """Scales the saturation."""

    keeps_frame_shape = True
    schema = Schema(
        name="Saturation",
        inputs=(
            Input(
                "input",
                ("HWC", "FHWC", "DHWC"),
                doc="Images of three channels.",
            ),
        ),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument("image_type", "DALIImageType", RGB, "Colour space of the input."),
            Argument("saturation", "float", 1.0, "Factor of saturation; 0 yields grey.", tensor=True, per_frame=True),
        ),
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

    def plan(self, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
        return hue_saturation_value(0.0, sample["saturation"], 1.0), np.zeros(3)
