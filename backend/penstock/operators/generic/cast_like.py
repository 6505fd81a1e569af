"""`cast_like`: converts to the type of another input."""

from __future__ import annotations

from penstock.operators.generic._casting import check_castable
from penstock.schema import Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import fixed_arrays


@register_operator
class CastLike(Operator):
    """Converts the first input to the type of the second. For integer types, values are rounded half away from zero and saturate."""

    schema = Schema(
        name="CastLike",
        inputs=(
            Input("input_0", doc="Data of any type and shape."),
            Input("input_1", device="any", doc="Data of the type to convert to.", example=fixed_arrays(1.0)),
        ),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        check_castable(batch.dtype, workspace.inputs[1].dtype)
        return [OutputSpec(workspace.inputs[1].dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.casting import cast

        cast(sample.inputs[0], sample.outputs[0])

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        plans = [None] * len(samples)
        copy_grouped(sources, targets, plans, lambda _, source, target: WindowCopy(source, target))
