"""`cat`: joins inputs along an existing dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.axes import resolve_axis
from penstock.kernels.joining import common_rank, common_type, joined_shapes
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, pictures
from penstock.schema.operator import Shape
from penstock.schema.plans import NoPlans


@register_operator
class Cat(Operator[int, None, NoPlans]):
    """Joins the samples of all inputs along a dimension; all other dimensions must agree."""

    schema = Schema(
        name="Cat",
        moves_elements=True,
        inputs=(Input("input_0", doc="Data of one type and rank."),),
        variadic=True,
        min_inputs=1,
        arguments=(
            Argument("axis", "int32", 0, "The dimension along which inputs are joined; negative: from the end."),
            Argument("axis_name", "string", None, "The letter of that dimension.", example="W"),
        ),
        examples=(Example(), Example({"axis": 1}, (pictures, pictures))),
        equivalents=(Equivalent("numpy.concatenate"),),
    )

    described_by_kind = True

    def setup(self) -> None:
        if self.given("axis") and self.given("axis_name"):
            raise RuntimeError("`axis` and `axis_name` cannot be given together")
        name = self.args["axis_name"]
        if name is not None and len(name) != 1:
            raise RuntimeError(f"`axis_name` must be a single character, got '{name}'")

    def describe(self, workspace: Workspace[int, None, NoPlans]) -> list[OutputSpec]:
        dtype, rank = common_type(workspace.inputs), common_rank(workspace.inputs)
        # The output gets the first input's layout, even if other inputs have different ones.
        layout = workspace.inputs[0].layout()
        name = self.args["axis_name"]
        if name is not None:
            if name not in layout:
                raise RuntimeError(f"``axis_name`` specifies an undefined axis '{name}' for layout \"{layout}\"")
            workspace.state = layout.index(name)
        elif rank == 0:
            raise RuntimeError("Cannot concatenate scalars: use `stack`")
        else:
            workspace.state = resolve_axis(self.args["axis"], rank)
        return [OutputSpec(dtype, layout, rank)]

    def infer_batch(self, samples: Samples[int, None, NoPlans]) -> tuple[np.ndarray, NoPlans]:
        inputs = list(map(samples.shapes, range(len(samples.workspace.inputs))))
        return joined_shapes(inputs, samples.state), NoPlans(len(samples))

    def compute_samples(self, workspace: Workspace[int, None, NoPlans], shapes: Sequence[Shape]) -> None:
        from penstock.kernels.cpu.blocks import join_samples

        if not join_samples(workspace, workspace.state):
            super().compute_samples(workspace, shapes)

    def compute(self, sample: Sample[int]) -> None:
        np.concatenate(sample.inputs, axis=sample.workspace.state, out=sample.outputs[0])

    def compute_batch(self, workspace: Workspace[int, None, NoPlans]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import join

        samples = workspace.live
        inputs = [locate_all(batch, samples) for batch in workspace.inputs]
        join(list(zip(*inputs)), locate_all(workspace.outputs[0], samples), workspace.state)
