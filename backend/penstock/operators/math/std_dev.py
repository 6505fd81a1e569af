"""`reductions.std_dev`."""

from __future__ import annotations

import numpy as np

from penstock.operators.math._reduction import DATA_AND_MEAN, DEVIATION_ARGUMENTS, Deviation
from penstock.schema import Equivalent, Sample, Schema, register_operator


@register_operator
class StdDev(Deviation):
    """Computes the standard deviation along dimensions, from the mean passed as the second input.

    >>> fn.reductions.std_dev(images, fn.reductions.mean(images, axis_names="HW"), axis_names="HW")
    """

    schema = Schema(
        name="reductions__StdDev",
        inputs=DATA_AND_MEAN,
        arguments=DEVIATION_ARGUMENTS,
        equivalents=(Equivalent("numpy.std"),),
    )
    root = True

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return np.sqrt(self.variance(data, axes, sample))
