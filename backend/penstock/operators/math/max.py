"""`reductions.max`."""

from __future__ import annotations

import numpy as np

from penstock.data_types import DALIDataType
from penstock.operators.math._reduction import REDUCTION_ARGUMENTS, Reduction, SamplesToReduce, extreme
from penstock.schema import Equivalent, Input, Sample, Schema, register_operator


@register_operator
class Max(Reduction):
    """Computes the maximum along dimensions, ignoring NaN. Without elements, the result is the type's lowest finite value.

    >>> fn.reductions.max(images, axis_names="HW")
    """

    schema = Schema(
        name="reductions__Max",
        inputs=(Input("input", doc="Data of an integer type or FLOAT."),),
        arguments=REDUCTION_ARGUMENTS,
        equivalents=(Equivalent("numpy.max"),),
    )
    merge = "Greatest"

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        return dtype

    def reduce_batch(self, batch: SamplesToReduce) -> bool:
        return batch.find_extremes(largest=True)

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return extreme(data, axes, largest=True)
