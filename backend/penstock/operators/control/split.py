"""`_conditional.split`: splits a batch by a predicate."""

from __future__ import annotations

from itertools import compress

from penstock.operators.control._predicates import truths
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator


@register_operator
class Split(Operator):
    """Splits a batch into the samples whose predicate is true and those whose predicate is false, without copying data."""

    schema = Schema(
        name="_conditional__Split",
        moves_elements=True,
        inputs=(Input("input"),),
        arguments=(
            Argument(
                "predicate",
                "bool",
                doc="For each sample, whether it goes to the first output: one value per sample.",
                required=True,
                tensor=True,
            ),
            Argument("_if_stmt", "bool", False, "Made from an `if` statement; for messages.", hidden=True),
        ),
        outputs=2,
        hidden=True,
        unswept="its outputs are parts of a batch",
    )

    def run(self, workspace: Workspace) -> None:
        batch, chosen = workspace.inputs[0], truth_values(self, workspace)
        positions = workspace.positions or range(len(batch))
        workspace.outputs = []
        for side in (chosen, [not value for value in chosen]):
            part = batch.shallow_copy() if all(side) else batch.subset(list(compress(range(len(batch)), side)))
            part.positions = list(compress(positions, side))
            workspace.outputs.append(part)


def truth_values(operator: Operator, workspace: Workspace) -> list[bool]:
    """Return the value of each sample's predicate; raise RuntimeError unless all predicates are scalars."""
    batch = workspace.arguments.get("predicate")
    if batch is None:
        return [bool(operator.args["predicate"])] * workspace.batch_size
    # The shape of a scalar is empty, and so false.
    for index, shape in enumerate(batch.shapes) if any(batch.shapes) else ():
        if shape and index not in workspace.failures:
            raise RuntimeError(
                "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that are placed on CPU. "
                f"Got a {len(shape)}-d input as a condition of the `if` statement."
            )
    return truths(batch)
