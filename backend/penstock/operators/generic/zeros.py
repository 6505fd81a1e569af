"""`zeros`: tensors of zeros."""

from __future__ import annotations

from penstock.data_types import INT32
from penstock.operators.generic._filling import LAYOUT, SHAPE, ShapedFilling, check_filled_type
from penstock.schema import Argument, Equivalent, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example


@register_operator
class Zeros(ShapedFilling):
    """Returns a tensor of zeros for each sample.

    >>> fn.zeros(shape=[2, 3], dtype=types.FLOAT)
    """

    schema = Schema(
        name="Zeros",
        devices=("cpu",),
        arguments=(Argument("dtype", "DALIDataType", INT32, "Type of the output."), LAYOUT, SHAPE),
        examples=(Example(), Example({"shape": [2, 3], "layout": "HW"})),
        equivalents=(Equivalent("numpy.zeros"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        check_filled_type(self.args["dtype"])
        return [self.shaped(workspace, self.args["dtype"])]

    def compute(self, sample: Sample) -> None:
        sample.outputs[0].fill(0)
