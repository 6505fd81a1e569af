"""`squeeze`: removes dimensions of extent 1."""

from __future__ import annotations

import math

from penstock.kernels.axes import resolve_axes
from penstock.schema import Argument, Input, Operator, Sample, Schema, Workspace, register_operator


@register_operator
class Squeeze(Operator):
    """Removes dimensions of extent 1; nothing is copied."""

    schema = Schema(
        name="Squeeze",
        inputs=(Input("data", doc="Data of any type and shape."),),
        arguments=(
            Argument("axes", "int32[]", None, "Dimensions of extent 1 to remove.", tensor=True),
            Argument("axis_names", "layout", None, "Letters of the dimensions to remove."),
        ),
    )

    def setup(self) -> None:
        if self.given("axes") == self.given("axis_names"):
            raise RuntimeError("Exactly one of `axes` and `axis_names` must be given")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        axes = self.args["axes"]
        if "axes" in workspace.arguments and len(batch):
            axes = Sample(self, workspace, 0)["axes"]
        if axes is not None:
            # Axes that the data does not have have nothing to remove.
            axes = [axis for axis in axes if 0 <= axis < batch.ndim()]
        removed = resolve_axes(axes, self.args["axis_names"], batch.layout(), batch.ndim()) or []
        kept = [axis for axis in range(batch.ndim()) if axis not in removed]
        for index, shape in enumerate(batch.shapes):
            volume, wanted = math.prod(shape), math.prod(shape[axis] for axis in kept)
            if volume != wanted and index not in workspace.failures:
                raise RuntimeError(
                    f"Only dimensions of extent 1 can be removed. Requested a shape with {wanted} elements but the "
                    f"original shape has {volume} elements."
                )
        shapes = [tuple(shape[axis] for axis in kept) for shape in batch.shapes]
        layout = "".join(batch.layout()[axis] for axis in kept) if batch.layout() else ""
        output = batch.relabelled(layout="", shapes=shapes)
        output._ndim, output._layout = len(kept), layout
        workspace.outputs = [output]
