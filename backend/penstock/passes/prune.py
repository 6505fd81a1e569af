"""Drops operators that no output needs and that have no side effects."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.passes.rewriting import Change, Rewritten


def prune(graph: Graph) -> Rewritten:
    """Return the graph without operators that neither an output nor a side effect needs."""
    preserved_sinks = [node for node in graph.sinks if node.source is not None and node.source.preserved]
    pruned = Graph(graph.outputs, preserved_sinks)
    left = set(pruned.operators)
    return Rewritten(pruned, tuple(Change("pruned", (op,)) for op in graph.operators if op not in left))
