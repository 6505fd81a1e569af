"""`reductions.mean`."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, DALIDataType
from penstock.operators.math._reduction import REDUCTION_ARGUMENTS, SamplesToReduce, TypedReduction, mean_of
from penstock.schema import Argument, Equivalent, Input, Sample, Schema, register_operator


@register_operator
class Mean(TypedReduction):
    """Computes the mean along dimensions.

    >>> fn.reductions.mean(images, axis_names="HW")
    """

    schema = Schema(
        name="reductions__Mean",
        inputs=(Input("input", doc="Data of an integer type or FLOAT."),),
        arguments=(
            *REDUCTION_ARGUMENTS,
            Argument(
                "dtype", "DALIDataType", None, "FLOAT (the default) or the input's type, which truncates fractions."
            ),
        ),
        equivalents=(Equivalent("numpy.mean"),),
    )
    divides = True

    def possible_types(self, dtype: DALIDataType) -> tuple[DALIDataType, ...]:
        return FLOAT, dtype

    def reduce_batch(self, batch: SamplesToReduce) -> bool:
        return batch.find_means(square=False)

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return mean_of(data, axes, kind, False)
