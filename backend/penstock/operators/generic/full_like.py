"""`full_like`: tensors filled with a value, with the shapes of another input."""

from __future__ import annotations

import numpy as np

from penstock.operators.generic._filling import spread
from penstock.schema import Equivalent, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import fixed_arrays


@register_operator
class FullLike(Operator):
    """Returns the second input, broadcast to the shape of the first and with its layout and type."""

    schema = Schema(
        name="FullLike",
        devices=("cpu",),
        inputs=(
            Input("data_like", device="any", doc="Data whose shapes to use; its contents do not matter."),
            Input(
                "fill_value",
                device="cpu",
                doc="A number, or a tensor that broadcasts to the output's shape.",
                example=fixed_arrays(3.0, 4.0, 5.0),
            ),
        ),
        equivalents=(Equivalent("numpy.full_like"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        return [OutputSpec(batch.dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.casting import cast

        value, target = np.ascontiguousarray(sample.inputs[1]), sample.outputs[0]
        converted = np.empty(np.shape(sample.inputs[1]), target.dtype)
        cast(value, converted)
        np.copyto(target, spread(converted, target.shape))
