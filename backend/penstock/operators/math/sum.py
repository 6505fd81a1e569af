"""`reductions.sum`."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, DALIDataType, element_size
from penstock.kernels.elementwise import folded
from penstock.operators.math._reduction import REDUCTION_ARGUMENTS, TypedReduction, widest
from penstock.schema import Argument, Equivalent, Input, Sample, Schema, register_operator


@register_operator
class Sum(TypedReduction):
    """The sum along dimensions. Integers are summed in 64 bits by default; sums wrap.

    >>> fn.reductions.sum(images, axis_names="HW")
    """

    schema = Schema(
        name="reductions__Sum",
        inputs=(Input("input", doc="Data of an integer type or FLOAT."),),
        arguments=(
            *REDUCTION_ARGUMENTS,
            Argument("dtype", "DALIDataType", None, "INT64 or UINT64 (the default), FLOAT, or the input's type."),
        ),
        equivalents=(Equivalent("numpy.sum"),),
    )

    def possible_types(self, dtype: DALIDataType) -> tuple[DALIDataType, ...]:
        wide = widest(dtype)
        return (wide, dtype) if element_size(dtype) == 8 else (wide, dtype, FLOAT)

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return folded(np.add, data, axes, dtype=np.dtype(np.float64) if kind.kind == "f" else kind)
