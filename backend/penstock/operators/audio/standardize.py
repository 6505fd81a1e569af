"""`standardize`: shifts and scales samples to mean 0 and variance 1."""

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
    """Computes ``(x - mean(x)) / sqrt(var(x) + epsilon)`` of each sample, bit for bit as numpy does in single precision.

    Feature extractors of speech models do this over the whole sample (wav2vec 2.0), or along an axis (SeamlessM4T,
    Speech2Text). `normalize` computes the same, but rounds differently.

    >>> signals = fn.standardize(signals)  # doctest: +SKIP
    """

    schema = Schema(
        name="Standardize",
        devices=("cpu",),
        inputs=(Input("input", doc="Data of float, of any shape, not empty.", example=signals),),
        arguments=(
            Argument(
                "axis", "int32", None, "The axis to standardize along; by default, all elements together.", example=0
            ),
            Argument("ddof", "int32", 0, "Subtracted from the number of elements by which the variance is divided."),
            Argument("epsilon", "float", 1e-7, "Added to the variance, so that silence stays finite."),
            Argument("of_deviation", "bool", False, "Add epsilon to the deviation instead of the variance."),
            Argument(
                "recentred",
                "bool",
                False,
                "Compute the variance from values whose mean is subtracted first; it rounds differently.",
            ),
        ),
        equivalents=(Equivalent("numpy.var"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Data must be float. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape, axis = sample.shapes[0], self.args["axis"]
        if 0 in shape:
            raise ValueError("Cannot standardize an empty sample: it has no mean")
        if axis is not None and not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"`axis` must be from {-len(shape)} to {len(shape) - 1} for {len(shape)} dimensions. Got: {axis}"
            )
        return shape

    def compute(self, sample: Sample) -> None:
        data, axis, epsilon = sample.inputs[0], self.args["axis"], self.args["epsilon"]
        along = {"axis": axis, "keepdims": axis is not None}
        centred = data - data.mean(**along)
        spread = (centred if self.args["recentred"] else data).var(**along, ddof=self.args["ddof"])
        spread = np.sqrt(spread) + epsilon if self.args["of_deviation"] else np.sqrt(spread + epsilon)
        # If all elements are equal and epsilon is 0, the result is NaN, as in numpy.
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(centred, spread, out=sample.outputs[0])
