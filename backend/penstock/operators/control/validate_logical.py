"""`_conditional.validate_logical`: checks the operands of `and` and `or`."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from penstock.data_types import BOOL, dtype_name
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import fixed_arrays


@register_operator
class ValidateLogical(Operator):
    """Passes boolean scalars through, and rejects all other operands."""

    schema = Schema(
        name="_conditional__ValidateLogical",
        devices=("cpu",),
        inputs=(Input("input", example=fixed_arrays(True, False, True, dtype=np.bool_)),),
        arguments=(
            Argument("expression_name", "string", doc="`and` or `or`.", required=True, choices=("and", "or")),
            Argument("expression_side", "string", doc="`left` or `right`.", required=True, choices=("left", "right")),
        ),
        hidden=True,
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        if len(batch):
            if batch.ndim() != 0:
                self._refuse(f"a {batch.ndim()}-d input")
            if batch.dtype != BOOL:
                self._refuse(f"an input of type `{dtype_name(batch.dtype)}`")
        workspace.outputs = [batch]

    def _refuse(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"Logical expression `{self.args['expression_name']}` is restricted to scalar (0-d tensors) inputs of `bool` type, that "
            f"are placed on CPU. Got {what} as the {self.args['expression_side']} argument in logical expression."
        )
