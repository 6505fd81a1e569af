"""`cast_like`: the type of another input."""

from __future__ import annotations

from penstock.schema import Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator


@register_operator
class CastLike(Operator):
    """The first input's values in the second's type: integers are rounded half away from zero and saturate."""

    schema = Schema(
        name="CastLike",
        inputs=(
            Input("input_0", doc="Data of any type and shape."),
            Input("input_1", device="any", doc="Its type is taken."),
        ),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        return [OutputSpec(workspace.inputs[1].dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.convert import cast

        cast(sample.inputs[0], sample.outputs[0])

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.window import WindowCopy, copy_windows

        # Seen flat, an array of any rank is one dimension.
        copy_windows([WindowCopy(s.inputs[0].reshape(-1), s.outputs[0].reshape(-1)) for s in workspace.live])
