"""`_conditional.not_`: the keyword `not`, for each sample."""

from __future__ import annotations

from penstock.data_types import BOOL
from penstock.schema import Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import fixed_arrays


@register_operator
class Not(Operator):
    """The logical negation of a scalar of any numeric type."""

    schema = Schema(
        name="_conditional__Not_",
        devices=("cpu",),
        inputs=(Input("input", example=fixed_arrays(1.0, 0.0, 2.0)),),
        hidden=True,
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        ndim = workspace.inputs[0].ndim()
        if len(workspace.inputs[0]) and ndim != 0:
            raise RuntimeError(
                "Logical expression `not` is restricted to scalar (0-d tensors) inputs, that are placed on CPU. "
                f"Got a {ndim}-d input in logical expression."
            )
        return [OutputSpec(BOOL, "", 0)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return ()

    def compute(self, sample: Sample) -> None:
        sample.outputs[0][()] = not sample.inputs[0]
