"""Replaces operators in a row by one that does what all do, where the data between them is used for nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

from penstock.graph import DataNode, Graph, OpNode
from penstock.passes.rewriting import Change, Rewritten, with_replacements
from penstock.schema import Operator, Schema, all_schemas, find_schema, operator_class
from penstock.schema.fused import FusedOperator, fused_argument


def fuse(graph: Graph) -> Rewritten:
    """The graph in which operators that have one operator for all of them are that operator."""
    return fuse_chains(graph, "fuse")


def fuse_chains(graph: Graph, by: str) -> Rewritten:
    """The graph with each chain that some fused operator of the pass ``by`` declares; longer chains go first."""
    chains = {s.name: s.fuses for s in all_schemas() if s.fuses and s.fused_by == by}
    rules = sorted(chains, key=lambda name: len(chains[name]), reverse=True)
    changes: list[Change] = []
    while True:
        uses = Counter(node.name for node in all_uses(graph))
        replacements = {}
        # From the outputs on, so that a chain is found by its end.
        for op in reversed(graph.operators):
            able = (rule for rule in rules if op.device in find_schema(rule).devices)
            found = ((rule, _chain(chains[rule], op, uses)) for rule in able)
            rule, chain = next(((rule, chain) for rule, chain in found if chain), ("", []))
            fused = fused_chain(find_schema(rule), chain) if chain else None
            if fused is not None:
                replacements[op.name] = fused.outputs[0]
                changes.append(Change("fused", tuple(chain), fused))
                break
        if not replacements:
            return Rewritten(graph, tuple(changes))
        graph = with_replacements(graph, replacements)


def all_uses(graph: Graph) -> Iterable[DataNode]:
    """Each node as often as something needs it."""
    yield from graph.outputs
    yield from graph.sinks
    for op in graph.operators:
        yield from op.all_inputs()


def _chain(names: Sequence[Sequence[str]], last: OpNode, uses: Counter[str]) -> list[OpNode]:
    """The operators of a chain that ends with ``last``; empty where there is none, or something speaks against it."""
    chain: list[OpNode] = []
    op: OpNode | None = last
    for allowed in reversed(names):
        if (
            op is None
            or op.schema.name not in allowed
            or op.preserved
            or op.device != last.device
            or len(op.outputs) != 1
        ):
            return []
        if chain:
            between = chain[0].inputs[0]
            if uses[between.name] != 1 or between.device != op.outputs[0].device:
                return []
        chain.insert(0, op)
        op = op.inputs[0].source if len(op.inputs) == 1 else None
    return chain


def fused_chain(rule: Schema, chain: Sequence[OpNode]) -> OpNode | None:
    """The operator that does what all of ``chain`` do; None where one of them refuses its arguments, or it does."""
    last = chain[-1]
    try:
        operators = tuple(_operator(op) for op in chain)
    except Exception:
        # It refuses them when the plan is made too, and is reported there with its place in the pipeline.
        return None
    if not cast(type[FusedOperator], operator_class(rule.name)).takes(operators):
        return None
    arguments = {
        fused_argument(position, name): node
        for position, op in enumerate(chain)
        for name, node in op.argument_inputs.items()
    }
    payload = (tuple(chain), operators)
    return OpNode(
        rule,
        last.name,
        last.device,
        list(chain[0].inputs),
        arguments,
        {},
        last.display_name,
        last.named,
        sites=last.sites,
        payload=payload,
    )


def _operator(op: OpNode) -> Operator:
    operator = operator_class(op.schema.name)(op.arguments, op.device, op.argument_inputs, -1, op.schema)
    operator.bind(op.payload)
    return operator
