"""`full`: tensors filled with a value."""

from __future__ import annotations

import numpy as np

from penstock.operators.generic._filling import LAYOUT, SHAPE, ShapedFilling, spread
from penstock.schema import Equivalent, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, fixed_arrays


@register_operator
class Full(ShapedFilling[None, np.ndarray]):
    """A tensor for each sample, filled with a value or a broadcast tensor.

    >>> fn.full(fn.random.uniform(), shape=[2, 3])
    """

    schema = Schema(
        name="Full",
        devices=("cpu",),
        inputs=(
            Input(
                "fill_value",
                doc="A number, or a tensor that broadcasts to the output's shape.",
                example=fixed_arrays(3.0, 4.0, 5.0),
            ),
        ),
        arguments=(LAYOUT, SHAPE),
        examples=(Example(), Example({"shape": [2, 3], "layout": "HW"})),
        equivalents=(Equivalent("numpy.full"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [self.shaped(workspace, workspace.inputs[0].dtype)]

    def infer(self, sample: Sample[None, np.ndarray]) -> tuple[int, ...]:
        shape = super().infer(sample)
        sample.plan = spread(sample.inputs[0], shape)
        return shape

    def compute(self, sample: Sample[None, np.ndarray]) -> None:
        np.copyto(sample.outputs[0], sample.plan)
