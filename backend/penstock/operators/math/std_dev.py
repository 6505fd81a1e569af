"""`reductions.std_dev`."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, DALIDataType, dtype_name
from penstock.operators.math._reduction import REDUCTION_ARGUMENTS, Reduction, deviation_of
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.samples import fixed_arrays


@register_operator
class StdDev(Reduction):
    """The standard deviation along dimensions, from a given mean.

    >>> fn.reductions.std_dev(images, fn.reductions.mean(images, axis_names="HW"), axis_names="HW")
    """

    schema = Schema(
        name="reductions__StdDev",
        inputs=(
            Input("data", doc="Data of an integer type or FLOAT."),
            Input(
                "mean",
                doc="FLOAT: one mean for all, or one for each element of the output.",
                example=fixed_arrays(120.0, 100.0, 130.0),
            ),
        ),
        arguments=(
            *REDUCTION_ARGUMENTS,
            Argument("ddof", "int32", 0, "Subtracted from the number of elements in the denominator."),
        ),
        equivalents=(Equivalent("numpy.std"),),
    )
    squares = True
    divides = True
    root = True

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        return FLOAT

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        if workspace.inputs[1].dtype != FLOAT:
            raise RuntimeError(f"The mean must be of type float, got {dtype_name(workspace.inputs[1].dtype)}")
        return super().describe(workspace)

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        return np.sqrt(deviation_of(data, sample.inputs[1], axes, self.args["ddof"]))
