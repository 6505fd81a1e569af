"""`reductions.mean_square`."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, DALIDataType
from penstock.operators.math._reduction import REDUCTION_ARGUMENTS, SamplesToReduce, TypedReduction, mean_of, widest
from penstock.schema import Argument, Input, Sample, Schema, register_operator


@register_operator
class MeanSquare(TypedReduction):
    """Computes the mean of squares along dimensions.

    >>> fn.reductions.mean_square(signals, axes=[0])
    """

    schema = Schema(
        name="reductions__MeanSquare",
        inputs=(Input("input", doc="Data of an integer type or FLOAT."),),
        arguments=(
            *REDUCTION_ARGUMENTS,
            Argument(
                "dtype", "DALIDataType", None, "FLOAT (the default), or INT64 or UINT64, which truncate fractions."
            ),
        ),
    )
    squares = True
    divides = True

    def possible_types(self, dtype: DALIDataType) -> tuple[DALIDataType, ...]:
        return FLOAT, widest(dtype)

    def reduce_batch(self, batch: SamplesToReduce) -> bool:
        return batch.find_means(square=True)

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return mean_of(data, axes, kind, True)
