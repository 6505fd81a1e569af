"""`_conditional.merge`: merges the two parts of a split batch."""

from __future__ import annotations

from penstock.data_types import dtype_name
from penstock.operators.control._predicates import truths
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.tensors import TensorList


@register_operator
class Merge(Operator):
    """Takes each sample from the first input if its predicate is true, otherwise from the second input; copies no data."""

    schema = Schema(
        name="_conditional__Merge",
        moves_elements=True,
        inputs=(Input("input_0"), Input("input_1")),
        arguments=(
            Argument(
                "predicate",
                "bool",
                doc="For each sample, whether it comes from the first input.",
                required=True,
                tensor=True,
            ),
        ),
        merges=True,
        hidden=True,
        unswept="it takes the parts of a batch",
    )

    def run(self, workspace: Workspace) -> None:
        where_true, where_false = workspace.inputs
        predicate = workspace.arguments["predicate"]
        chosen = truths(predicate)
        if len(where_true) + len(where_false) != len(chosen):
            raise RuntimeError(
                f"Merge got {len(where_true)} and {len(where_false)} samples for a predicate of {len(chosen)} samples"
            )
        self._check_alike(where_true, where_false)
        first = where_true if len(where_true) else where_false
        sides = {True: iter(where_true.samples), False: iter(where_false.samples)}
        merged = type(first).of_samples([next(sides[c]) for c in chosen], first.layout(), first.dtype, first.ndim())
        infos = {True: iter(where_true.source_infos), False: iter(where_false.source_infos)}
        if where_true.source_infos or where_false.source_infos:
            merged.source_infos = [next(infos[c], "") for c in chosen]
        merged.positions = predicate.positions
        workspace.outputs = [merged]

    @staticmethod
    def _check_alike(one: TensorList, other: TensorList) -> None:
        if not len(one) or not len(other):
            return
        differing = []
        if one.dtype != other.dtype:
            differing.append(f"distinct types: {dtype_name(one.dtype)} and {dtype_name(other.dtype)}")
        if one.ndim() != other.ndim():
            differing.append(f"distinct sample dimensions: {one.ndim()} and {other.ndim()}")
        if one.layout() != other.layout():
            differing.append(f'distinct layouts: "{one.layout()}" and "{other.layout()}"')
        if differing:
            raise RuntimeError(
                "Divergent data found in different branches of conditional operation. All paths in conditional operation are "
                "merged into one batch which must have consistent type, number of dimensions, layout and other metadata. Found "
                + "; ".join(differing)
                + "."
            )
