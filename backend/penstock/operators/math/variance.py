"""`reductions.variance`."""

from __future__ import annotations

import numpy as np

from penstock.operators.math._reduction import DATA_AND_MEAN, DEVIATION_ARGUMENTS, Deviation
from penstock.schema import Equivalent, Sample, Schema, register_operator


@register_operator
class Variance(Deviation):
    """Computes the variance along dimensions, from the mean passed as the second input.

    >>> fn.reductions.variance(images, fn.reductions.mean(images, axis_names="HW"), axis_names="HW")
    """

    schema = Schema(
        name="reductions__Variance",
        inputs=DATA_AND_MEAN,
        arguments=DEVIATION_ARGUMENTS,
        equivalents=(Equivalent("numpy.var"),),
    )

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return self.variance(data, axes, sample)
