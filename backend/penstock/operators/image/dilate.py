"""`experimental.dilate`: bright regions grow."""

from __future__ import annotations

from penstock.operators.image._morphology import ARGUMENTS, INPUTS, MorphologyOperator
from penstock.schema import Equivalent, Schema, register_operator
from penstock.schema.example_data import on_photo
from penstock.schema.libraries import OPENCV


@register_operator
class Dilate(MorphologyOperator):
    """Sets each pixel to the greatest value under a rectangular mask."""

    keeps_frame_shape = True
    schema = Schema(
        name="experimental__Dilate",
        inputs=INPUTS,
        arguments=ARGUMENTS,
        needs=(OPENCV,),
        sequences=True,
        shown=(on_photo(mask_size=[7, 7]),),
        equivalents=(
            Equivalent("cv2.dilate", "Masks of any form."),
            Equivalent("PIL.ImageFilter.MaxFilter", "Square windows of odd size."),
        ),
    )
    function = "dilate"
    extreme = "Greatest"
