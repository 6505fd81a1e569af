"""`standardize`: samples with mean 0 and variance 1."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import signals


@register_operator
class Standardize(Operator):
    """Computes ``(x - mean(x)) / sqrt(var(x) + epsilon)`` of each sample, to the bit as numpy does in single precision.

    This is what the feature extractors of wav2vec 2.0 do. `normalize` does it with other roundings, and along axes.

    >>> signals = fn.standardize(signals)  # doctest: +SKIP
    """

    schema = Schema(
        name="Standardize",
        devices=("cpu",),
        inputs=(Input("input", doc="Data of float, of any shape, not empty.", example=signals),),
        arguments=(Argument("epsilon", "float", 1e-7, "Added to the variance, so that silence stays finite."),),
        equivalents=(Equivalent("numpy.var"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Data must be of float. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        if 0 in sample.shapes[0]:
            raise ValueError("The sample is empty: it has no mean")
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        data = sample.inputs[0]
        spread = np.sqrt(data.var() + self.args["epsilon"])
        np.divide(data - data.mean(), spread, out=sample.outputs[0])
