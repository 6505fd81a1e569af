"""`_conditional.validate_logical`: checks the operands of `and` and `or`."""

from __future__ import annotations

from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.types import BOOL, dtype_name


@register_operator
class ValidateLogical(Operator):
    """Passes a boolean scalar through and refuses anything else."""

    schema = Schema(
        name="_conditional__ValidateLogical",
        devices=("cpu",),
        inputs=(Input("input"),),
        arguments=(
            Argument("expression_name", "string", doc="`and` or `or`.", required=True),
            Argument("expression_side", "string", doc="`left` or `right`.", required=True),
        ),
        hidden=True,
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        if len(batch):
            where = f"the {self.args['expression_side']} argument of the logical expression `{self.args['expression_name']}`"
            if batch.ndim() != 0:
                raise RuntimeError(
                    f"Logical expressions take scalars (0-d tensors): {where} has {batch.ndim()} dimensions."
                )
            if batch.dtype != BOOL:
                raise RuntimeError(f"Logical expressions take booleans: {where} is of type {dtype_name(batch.dtype)}.")
        workspace.outputs = [batch]
