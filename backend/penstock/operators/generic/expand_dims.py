"""`expand_dims`: inserts dimensions of extent 1."""

from __future__ import annotations

from penstock.schema import Argument, Equivalent, Input, Operator, Schema, Workspace, register_operator


@register_operator
class ExpandDims(Operator):
    """Inserts dimensions of extent 1, without a copy."""

    schema = Schema(
        name="ExpandDims",
        moves_elements=True,
        inputs=(Input("data", doc="Data of any type and shape."),),
        arguments=(
            Argument(
                "axes", "int32[]", doc="Positions of the new dimensions in the output.", required=True, example=[0]
            ),
            Argument("new_axis_names", "layout", "", "Letters of the new dimensions.", example="F"),
        ),
        equivalents=(Equivalent("numpy.expand_dims"),),
    )

    def setup(self) -> None:
        axes, names = self.args["axes"], self.args["new_axis_names"]
        if any(axis < 0 for axis in axes):
            raise RuntimeError(f"Axis value can't be negative, got {axes}")
        if names and len(names) != len(axes):
            raise RuntimeError(
                f"Specified {len(axes)} new dimensions, but layout contains only {len(names)} new dimension names: '{names}'"
            )
        if len(set(axes)) != len(axes):
            raise RuntimeError(f"Duplicate axis index found in {axes}")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        axes = self.args["axes"]
        if self.given("new_axis_names") and batch.ndim() and not batch.layout():
            raise RuntimeError(
                "Specifying ``new_axis_names`` requires an input with a proper layout, and the data has none"
            )
        rank = batch.ndim() + len(axes)
        if any(axis >= rank for axis in axes):
            raise RuntimeError(
                f"Data has not enough dimensions to add new axes at specified indices {axes}: the output has {rank}"
            )
        shapes = []
        for shape in batch.shapes:
            rest = iter(shape)
            shapes.append(tuple(1 if axis in axes else next(rest) for axis in range(rank)))
        layout = self._layout(batch.layout(), batch.ndim(), rank)
        workspace.outputs = [batch.relabelled(layout, shapes, rank)]

    def _layout(self, layout: str, ndim: int, rank: int) -> str:
        names = self.args["new_axis_names"]
        if not self.args["axes"]:
            return layout
        if self.given("new_axis_names") and not names and layout:
            # As new dimensions have no names, the layout ends before the first of them.
            return layout[: min(self.args["axes"])]
        if not names or (ndim and not layout):
            return ""
        new = dict(zip(self.args["axes"], names))
        rest = iter(layout)
        return "".join(new[axis] if axis in new else next(rest) for axis in range(rank))
