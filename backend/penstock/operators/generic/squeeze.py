"""`squeeze`: removes dimensions of extent 1."""

from __future__ import annotations

import math
from functools import partial

from penstock.kernels.axes import resolve_axes
from penstock.schema import Argument, Equivalent, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, pictures


@register_operator
class Squeeze(Operator):
    """Removes dimensions of extent 1, without a copy."""

    schema = Schema(
        name="Squeeze",
        moves_elements=True,
        inputs=(Input("data", doc="Data of any type and shape.", example=partial(pictures, C=(1,))),),
        arguments=(
            Argument("axes", "int32[]", None, "Dimensions of extent 1 to remove.", tensor=True, example=[2]),
            Argument("axis_names", "layout", None, "Letters of the dimensions to remove.", example="C"),
        ),
        examples=(Example({"axes": [2]}), Example({"axis_names": "C"})),
        exempt={"tensor arguments": "DALI does not look at axes from the graph"},
        equivalents=(Equivalent("numpy.squeeze"),),
    )

    def setup(self) -> None:
        if "axes" in self.explicit and self.given("axis_names"):
            raise RuntimeError("Provided both ``axes`` and ``axis_names`` arguments")
        # As in DALI, a tensor argument `axes` is accepted together with `axis_names`, and ignored.
        if "axes" not in self.explicit and not self.given("axis_names"):
            raise RuntimeError("Missing argument ``axes`` or ``axis_names``.")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        axes = self.args["axes"]
        if axes is not None:
            if len(set(axes)) < len(axes):
                raise RuntimeError(f"Specified at least twice same dimension to remove. Axes: {axes}")
            # Axes that do not exist are ignored; if one of them is negative, all axes are ignored.
            axes = [] if min(axes, default=0) < 0 else [axis for axis in axes if axis < batch.ndim()]
        removed = resolve_axes(axes, self.args["axis_names"], batch.layout(), batch.ndim()) or []
        remaining = [axis for axis in range(batch.ndim()) if axis not in removed]
        for index, shape in enumerate(batch.shapes):
            volume, wanted = math.prod(shape), math.prod(shape[axis] for axis in remaining)
            if volume != wanted and index not in workspace.failures:
                raise RuntimeError(
                    "Only dimensions of extent 1 can be removed. The volume of the new shape should match the one of the "
                    f"original shape. Requested a shape with {wanted} elements but the original shape has {volume} elements."
                )
        shapes = [tuple(shape[axis] for axis in remaining) for shape in batch.shapes]
        if workspace.failures:
            batch = batch.emptied(workspace.failures)
            empty = (0,) * max(len(remaining), 1)
            shapes = [empty if index in workspace.failures else shape for index, shape in enumerate(shapes)]
        layout = "".join(batch.layout()[axis] for axis in remaining) if batch.layout() else ""
        workspace.outputs = [batch.relabelled(layout, shapes, len(remaining))]
