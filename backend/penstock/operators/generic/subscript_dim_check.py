"""`_subscript_dim_check`: the result of indexing with full ranges only, such as ``node[:, :]``."""

from __future__ import annotations

from penstock.schema import Alias, Argument, Input, Operator, Schema, Workspace, register_operator


@register_operator
class SubscriptDimCheck(Operator):
    """Returns its input unchanged, after checking that it has at least as many dimensions as there were subscripts."""

    schema = Schema(
        name="_SubscriptDimCheck",
        inputs=(Input("data"),),
        arguments=(
            Argument("num_subscripts", "int32", doc="How many dimensions were indexed.", required=True, example=2),
        ),
        hidden=True,
        aliases=(Alias("SubscriptDimCheck", fn="_subscript_dim_check_1"),),
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        if len(batch) and self.args["num_subscripts"] > batch.ndim():
            raise IndexError(f"Too many indices ({self.args['num_subscripts']}) for a {batch.ndim()}-D tensor.")
        workspace.outputs = [batch.relabelled()]
