"""`reductions.rms`."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, DALIDataType
from penstock.operators.math._reduction import REDUCTION_ARGUMENTS, SamplesToReduce, TypedReduction, mean_of
from penstock.schema import Argument, Input, Sample, Schema, register_operator


@register_operator
class RootMeanSquare(TypedReduction):
    """Computes the root mean square along dimensions.

    >>> fn.reductions.rms(signals, axes=[0])
    """

    schema = Schema(
        name="reductions__RMS",
        inputs=(Input("input", doc="Data of an integer type or FLOAT."),),
        arguments=(
            *REDUCTION_ARGUMENTS,
            Argument(
                "dtype", "DALIDataType", None, "FLOAT (the default) or the input's type, which truncates fractions."
            ),
        ),
    )
    squares = True
    divides = True
    root = True

    def possible_types(self, dtype: DALIDataType) -> tuple[DALIDataType, ...]:
        return FLOAT, dtype

    def reduce_batch(self, batch: SamplesToReduce) -> bool:
        is_done = batch.find_means(square=True)
        if is_done:
            np.sqrt(batch.results, out=batch.results)
        return is_done

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        mean = mean_of(data, axes, kind, True)
        return np.sqrt(mean if kind == np.float32 else mean.astype(np.float64)).astype(kind)
