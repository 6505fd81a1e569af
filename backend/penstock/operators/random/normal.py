"""`random.normal`: normally distributed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.random._draw import DTYPE, SHAPE, SHAPE_LIKE, Draw, is_wide
from penstock.schema import Alias, Argument, Equivalent, Sample, Schema, register_operator
from penstock.schema.random_operator import Streams


@register_operator
class Normal(Draw):
    """Returns normally distributed numbers. For integer types, numbers are rounded and saturate.

    >>> jitter = fn.random.normal(mean=1.0, stddev=0.1)
    """

    schema = Schema(
        name="random__Normal",
        inputs=(SHAPE_LIKE,),
        min_inputs=0,
        arguments=(
            DTYPE,
            Argument("mean", "float", 0.0, "Mean of the distribution.", tensor=True, zero_dimensional=True),
            SHAPE,
            Argument(
                "stddev", "float", 1.0, "Standard deviation of the distribution.", tensor=True, zero_dimensional=True
            ),
        ),
        random=True,
        stateful=True,
        aliases=(Alias("NormalDistribution", deprecated_since="0.30"),),
        equivalents=(Equivalent("numpy.random.Generator.normal", "It draws other numbers."),),
    )

    def fill_batch(self, sample: Sample, out: np.ndarray, streams: Streams) -> None:
        from penstock.kernels.cpu.casting import cast
        from penstock.kernels.cpu.distributions import fill_normal, fill_normal_double

        mean, stddev = np.float32(sample["mean"]), np.float32(sample["stddev"])
        if is_wide(out.dtype):
            drawn = np.empty(out.shape, np.float64)
            fill_normal_double(drawn, *streams, float(mean), float(stddev))
        else:
            drawn = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
            fill_normal(drawn, *streams, mean, stddev)
        if drawn is not out:
            cast(drawn.reshape(-1), out.reshape(-1))

    def distribution(self, sample: Sample, dtype: np.dtype) -> tuple[str, dict[str, Any]]:
        parameters = {"a": float(np.float32(sample["mean"])), "b": float(np.float32(sample["stddev"]))}
        return "NormalDouble" if is_wide(dtype) else "Normal", parameters
