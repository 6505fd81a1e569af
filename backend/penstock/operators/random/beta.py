"""`random.beta`: numbers of the beta distribution."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import DALIDataType
from penstock.operators.random._draw import DTYPE, SHAPE, SHAPE_LIKE, Draw
from penstock.schema import Argument, Equivalent, Sample, Schema, register_operator
from penstock.schema.example_data import Example
from penstock.schema.random_operator import Streams


@register_operator
class Beta(Draw):
    """Returns numbers between 0 and 1 from the beta distribution, for example for mixup.

    The numbers equal DALI's if `alpha` or `beta` is at least 1. If both are less, only the distribution is the same.

    >>> weight = fn.random.beta(alpha=0.2, beta=0.2)
    """

    schema = Schema(
        name="random__Beta",
        devices=("cpu",),
        inputs=(SHAPE_LIKE,),
        min_inputs=0,
        arguments=(
            Argument(
                "alpha", "float", 1.0, "The first shape parameter, greater than 0.", tensor=True, zero_dimensional=True
            ),
            Argument(
                "beta", "float", 1.0, "The second shape parameter, greater than 0.", tensor=True, zero_dimensional=True
            ),
            DTYPE,
            SHAPE,
        ),
        random=True,
        stateful=True,
        examples=(Example(), Example({"dtype": DALIDataType.FLOAT64})),
        equivalents=(Equivalent("numpy.random.Generator.beta", "It draws other numbers."),),
    )
    dtypes = (DALIDataType.FLOAT, DALIDataType.FLOAT64)

    def fill_batch(self, sample: Sample, out: np.ndarray, streams: Streams) -> None:
        from penstock.kernels.cpu import distributions

        for name in ("alpha", "beta"):
            if not (sample[name] > 0 and math.isfinite(sample[name])):
                raise RuntimeError(
                    f"The `{name}` must be a positive float32, got `{sample[name]:g}` for sample at index {sample.index}."
                )
        distributions.fill_beta(out, *streams, sample["alpha"], sample["beta"])
