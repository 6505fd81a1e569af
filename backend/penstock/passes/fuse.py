"""Replaces two operators by one that does both, where the data between them is used for nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from penstock.graph import DataNode, Graph, OpNode
from penstock.passes.rewriting import key_of, with_replacements
from penstock.schema import Operator, Schema, all_schemas, operator_class
from penstock.schema.fused import fused_argument


def fuse(graph: Graph) -> Graph:
    """The graph with each chain that some fused operator declares as that operator."""
    rules = [schema for schema in all_schemas() if schema.fuses is not None]
    while True:
        uses = Counter(key_of(node) for node in _all_uses(graph))
        replacements = {}
        for op in graph.operators:
            fused = next(filter(None, (_fused(rule, op, uses) for rule in rules)), None)
            if fused is not None:
                replacements[key_of(op.outputs[0])] = fused.outputs[0]
                break
        if not replacements:
            return graph
        graph = with_replacements(graph, replacements)


def _all_uses(graph: Graph) -> Iterable[DataNode]:
    yield from graph.outputs
    yield from graph.sinks
    for op in graph.operators:
        yield from op.all_inputs()


def _fused(rule: Schema, second: OpNode, uses: Counter[tuple[str, str]]) -> OpNode | None:
    """The operator that does ``second`` and what is before it, if ``rule`` declares it and nothing speaks against it."""
    assert rule.fuses is not None
    if second.schema.name not in rule.fuses[1] or len(second.inputs) != 1:
        return None
    between = second.inputs[0]
    first = between.source
    if first is None or first.schema.name not in rule.fuses[0] or first.device != second.device:
        return None
    alone = len(first.outputs) == 1 and uses[key_of(between)] == 1 and between.device == first.outputs[0].device
    if not alone or first.preserved or second.preserved:
        return None
    arguments = {
        fused_argument(position, name): node
        for position, op in enumerate((first, second))
        for name, node in op.argument_inputs.items()
    }
    return OpNode(
        rule,
        second.name,
        second.device,
        list(first.inputs),
        arguments,
        {},
        second.display_name,
        second.named,
        sites=second.sites,
        payload=((first, second), (_operator(first), _operator(second))),
    )


def _operator(op: OpNode) -> Operator:
    operator = operator_class(op.schema.name)(op.arguments, op.device, op.argument_inputs, -1, op.schema)
    operator.bind(op.payload)
    return operator
