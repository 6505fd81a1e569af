"""`ones_like`: tensors of ones with the shapes of another input."""

from __future__ import annotations

from penstock.operators.generic._filling import DATA_LIKE, DTYPE_LIKE, FillingLike
from penstock.schema import Equivalent, Schema, register_operator


@register_operator
class OnesLike(FillingLike):
    """Returns a tensor of ones for each sample, with the shape, layout and (by default) type of the input."""

    schema = Schema(
        name="OnesLike",
        devices=("cpu",),
        inputs=(DATA_LIKE,),
        arguments=(DTYPE_LIKE,),
        equivalents=(Equivalent("numpy.ones_like"),),
    )
    value = 1
