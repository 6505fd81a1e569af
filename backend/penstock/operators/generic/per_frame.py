"""`per_frame`: marks the first dimension as frames."""

from __future__ import annotations

from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import random_arrays


@register_operator
class PerFrame(Operator):
    """Names the first dimension F, so that a tensor passed as an argument has one value for each frame."""

    schema = Schema(
        name="PerFrame",
        inputs=(
            Input("input", doc="Data with at least one dimension.", example=random_arrays((3, 4), (5, 2), (1, 1))),
        ),
        arguments=(
            Argument(
                "replace", "bool", False, "Replace the layout's first letter by F instead of rejecting any other."
            ),
        ),
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        layout = batch.layout()
        if batch.ndim() == 0 and len(batch):
            raise RuntimeError("Cannot mark zero-dimensional input as a sequence: it has no dimension to name F.")
        if not layout:
            layout = "F" + "*" * (batch.ndim() - 1)
        elif layout[0] != "F":
            if not self.args["replace"]:
                raise RuntimeError(
                    f"Per-frame argument input must be a sequence. The input layout should start with 'F', got '{layout}'; "
                    "pass `replace=True` to replace its first letter."
                )
            layout = "F" + layout[1:]
        workspace.outputs = [batch.relabelled(layout=layout)]
