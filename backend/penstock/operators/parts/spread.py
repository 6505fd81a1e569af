"""`spread`: repeats a sample's data for each part of the sample."""

from __future__ import annotations

from penstock.operators.parts._parts import COUNTS, counts_of, mark_parts
from penstock.schema import Input, Operator, Schema, Workspace, register_operator


@register_operator
class Spread(Operator):
    """Repeats each sample as often as there are parts of it, without a copy, so that it can be an argument of operators on parts.

    >>> crops, counts = fn.crop_boxes(images, boxes)
    >>> crops = fn.rotate(crops, angle=fn.spread(angles, counts=counts))
    """

    schema = Schema(
        name="Spread",
        moves_elements=True,
        inputs=(Input("input", doc="Data of any type and shape, one for each sample."),),
        arguments=(COUNTS,),
        unswept="its output is a batch of another size",
    )

    def run(self, workspace: Workspace) -> None:
        batch, counts = workspace.inputs[0], counts_of(workspace)
        counts = [0 if index in workspace.failures else count for index, count in enumerate(counts)]
        repeated = batch.repeated(counts)
        mark_parts(workspace, repeated, counts)
        workspace.outputs = [repeated]
