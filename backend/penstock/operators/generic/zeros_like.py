"""`zeros_like`: tensors of zeros with the shapes of another input."""

from __future__ import annotations

from penstock.operators.generic._filling import check_filled_type
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


@register_operator
class ZerosLike(Operator):
    """A tensor of zeros for each sample, with the shape, layout and (by default) type of the input."""

    schema = Schema(
        name="ZerosLike",
        devices=("cpu",),
        inputs=(Input("data_like", device="any", doc="Data whose shapes to use; its contents do not matter."),),
        arguments=(Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),),
        equivalents=(Equivalent("numpy.zeros_like"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch, dtype = workspace.inputs[0], self.args["dtype"]
        if dtype is not None:
            check_filled_type(dtype)
        return [OutputSpec(batch.dtype if dtype is None else dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        sample.outputs[0].fill(0)
