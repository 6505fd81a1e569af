"""`stack`: joins inputs along a new dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.axes import resolve_axis
from penstock.kernels.joining import common_rank, common_type
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
class Stack(Operator[int, None, NoPlans]):
    """Joins the samples of all inputs, which have equal shapes, along a new dimension."""

    schema = Schema(
        name="Stack",
        moves_elements=True,
        inputs=(Input("input_0", doc="Data of one type and shape."),),
        variadic=True,
        min_inputs=1,
        arguments=(
            Argument("axis", "int32", 0, "Position of the new dimension; negative: from the end."),
            Argument("axis_name", "string", None, "The letter of the new dimension.", example="F"),
        ),
        examples=(Example(), Example({"axis": 1}, (pictures, pictures))),
        equivalents=(Equivalent("numpy.stack"),),
    )

    described_by_kind = True

    def setup(self) -> None:
        name = self.args["axis_name"]
        if name is not None and len(name) != 1:
            raise RuntimeError(f"`axis_name` must be a single character, got '{name}'")

    def describe(self, workspace: Workspace[int, None, NoPlans]) -> list[OutputSpec]:
        dtype, rank = common_type(workspace.inputs), common_rank(workspace.inputs)
        # The output's layout follows from the first input's, even if other inputs have different ones.
        layout = workspace.inputs[0].layout()
        if not -rank <= self.args["axis"] <= rank:
            raise RuntimeError(
                f"Invalid axis argument, {self.args['axis']} for {rank}-D tensors. Accepted range is [ {-rank}, {rank}], with "
                "negative indices being counted from the back."
            )
        axis = resolve_axis(self.args["axis"], rank + 1)
        workspace.state = axis
        name = self.args["axis_name"]
        named = name is not None
        if named and rank and not layout:
            raise RuntimeError(
                "Specifying the new axis name with ``axis_name`` with non-scalar input requires a non-empty input layout."
            )
        return [OutputSpec(dtype, layout[:axis] + name + layout[axis:] if named else "", rank + 1)]

    def infer_batch(self, samples: Samples[int, None, NoPlans]) -> tuple[np.ndarray, NoPlans]:
        inputs = list(map(samples.shapes, range(len(samples.workspace.inputs))))
        for shapes in inputs[1:]:
            if not np.array_equal(shapes, inputs[0]):
                row = np.flatnonzero((shapes != inputs[0]).any(axis=1))[0]
                raise RuntimeError(
                    "Tensor stacking requires that all tensors being stacked are of equal shape. "
                    f"The shapes are {', '.join(str(own[row].tolist()) for own in inputs)}"
                )
        return np.insert(inputs[0], samples.state, len(inputs), axis=1), NoPlans(len(samples))

    def compute_samples(self, workspace: Workspace[int, None, NoPlans], shapes: Sequence[Shape]) -> None:
        from penstock.kernels.cpu.blocks import join_samples

        if not join_samples(workspace, workspace.state):
            super().compute_samples(workspace, shapes)

    def compute(self, sample: Sample[int]) -> None:
        before = (slice(None),) * sample.workspace.state
        for number, part in enumerate(sample.inputs):
            place = (*before, number)
            sample.outputs[0][place] = part

    def compute_batch(self, workspace: Workspace[int, None, NoPlans]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import join

        samples, axis = workspace.live, workspace.state
        # Stack by inserting a dimension of extent 1 into each part and concatenating along it.
        inputs = [
            [part.reshape(*part.shape[:axis], 1, *part.shape[axis:]) for part in locate_all(batch, samples)]
            for batch in workspace.inputs
        ]
        join(list(zip(*inputs)), locate_all(workspace.outputs[0], samples), axis)
