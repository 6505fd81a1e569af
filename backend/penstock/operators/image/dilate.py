"""`experimental.dilate`: bright regions grow."""

from __future__ import annotations

from penstock.operators.image._morphology import ARGUMENTS, INPUTS, MorphologyOperator
from penstock.schema import Schema, register_operator
from penstock.schema.libraries import OPENCV


@register_operator
class Dilate(MorphologyOperator):
    """Each pixel becomes the greatest of those under a rectangular mask."""

    keeps_frame_shape = True
    schema = Schema(name="experimental__Dilate", inputs=INPUTS, arguments=ARGUMENTS, needs=(OPENCV,), sequences=True)
    function = "dilate"
    extreme = "Greatest"
