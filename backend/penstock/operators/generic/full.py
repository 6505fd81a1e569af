"""`full`: tensors filled with a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.operators.generic._filling import LAYOUT, SHAPE, ShapedFilling, spread, spread_shape
from penstock.schema import Equivalent, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, fixed_arrays
from penstock.schema.operator import Shape


@register_operator
class Full(ShapedFilling):
    """Returns a tensor for each sample, filled with a number or with a tensor that is broadcast to the shape.

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

    plans_by_shape = True

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = super().infer(sample)
        spread_shape(sample.shapes[0], shape)
        return shape

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        values, output = workspace.inputs[0], workspace.outputs[0]
        if workspace.failures or not len(output) or not (values.is_dense_tensor() and output.is_dense_tensor()):
            super().compute_samples(workspace, shapes)
            return
        missing = (1,) * (len(shapes[0]) - values.ndim())
        stacked = np.array(values.samples).reshape(len(output), *missing, *values.shapes[0])
        spread_out = np.broadcast_to(stacked, (len(output), *spread_shape(values.shapes[0], shapes[0])))
        elements = output.contiguous_elements().reshape(len(output), -1)
        elements[:] = spread_out.reshape(len(output), -1)[:, : elements.shape[1]]

    def compute(self, sample: Sample) -> None:
        out = sample.outputs[0]
        np.copyto(out, spread(sample.inputs[0], out.shape))
