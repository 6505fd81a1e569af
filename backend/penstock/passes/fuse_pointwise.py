"""Takes chains of operators that compute element by element through memory once."""

from __future__ import annotations

from collections import Counter

from penstock.graph import Graph, OpNode
from penstock.passes.fuse import all_uses, fused_chain
from penstock.passes.rewriting import Change, Rewritten, with_replacements
from penstock.schema import all_schemas, operator_class
from penstock.schema.pointwise import PointwiseOperator


def fuse_pointwise(graph: Graph) -> Rewritten:
    """The graph in which chains of pointwise operators on the CPU, as long as they can be, are one operator each."""
    rule = next(schema for schema in all_schemas() if schema.fused_by == "fuse_pointwise")
    uses = Counter(node.name for node in all_uses(graph))
    changes: list[Change] = []
    taken: set[OpNode] = set()
    # From the outputs on, so that a chain is found by its end.
    for op in reversed(graph.operators):
        chain = [] if op in taken else _chain(op, uses)
        fused = fused_chain(rule, chain) if len(chain) > 1 else None
        if fused is not None:
            taken.update(chain)
            changes.append(Change("fused", tuple(chain), fused))
    for change in changes:
        assert change.into is not None
        graph = with_replacements(graph, {change.into.name: change.into.outputs[0]})
    return Rewritten(graph, tuple(changes))


def _chain(last: OpNode, uses: Counter[str]) -> list[OpNode]:
    """The pointwise operators in a row of which ``last`` is the last one; what is between them is used for nothing else."""
    chain: list[OpNode] = []
    op: OpNode | None = last
    while op is not None and _is_pointwise(op):
        chain.insert(0, op)
        before = op.inputs[0]
        op = before.source if uses[before.name] == 1 else None
    return chain


def _is_pointwise(op: OpNode) -> bool:
    if op.device != "cpu" or op.preserved or len(op.inputs) != 1 or len(op.outputs) != 1:
        return False
    kind = operator_class(op.schema.name)
    if not issubclass(kind, PointwiseOperator):
        return False
    try:
        return kind(op.arguments, op.device, op.argument_inputs, -1, op.schema).is_pointwise()
    except Exception:
        # It refuses its arguments when the plan is made, and is reported there with its place in the pipeline.
        return False
