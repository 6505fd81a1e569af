"""`experimental.erode`: bright regions shrink."""

from __future__ import annotations

from penstock.operators.image._morphology import ARGUMENTS, INPUTS, MorphologyOperator
from penstock.schema import Schema, register_operator
from penstock.schema.libraries import OPENCV


@register_operator
class Erode(MorphologyOperator):
    """Each pixel becomes the least of those under a rectangular mask."""

    keeps_frame_shape = True
    schema = Schema(name="experimental__Erode", inputs=INPUTS, arguments=ARGUMENTS, needs=(OPENCV,), sequences=True)
    function = "erode"
    extreme = "Least"
