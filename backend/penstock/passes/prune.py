"""Drops the operators that no output needs and that have no effect of their own."""

from __future__ import annotations

from penstock.graph import Graph


def prune(graph: Graph) -> Graph:
    """The same outputs, from no more operators than they need."""
    kept = [node for node in graph.sinks if node.source is not None and node.source.preserved]
    return Graph(graph.outputs, kept)
