"""`zeros_like`: tensors of zeros with the shapes of another input."""

from __future__ import annotations

from penstock.operators.generic._filling import DATA_LIKE, DTYPE_LIKE, FillingLike
from penstock.schema import Equivalent, Schema, register_operator


@register_operator
class ZerosLike(FillingLike):
    """Returns a tensor of zeros for each sample, with the shape, layout and (by default) type of the input."""

    schema = Schema(
        name="ZerosLike",
        devices=("cpu",),
        inputs=(DATA_LIKE,),
        arguments=(DTYPE_LIKE,),
        equivalents=(Equivalent("numpy.zeros_like"),),
    )
    value = 0
