"""Computes chains of elementwise operators in one sweep over memory."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.passes.fuse import fuse_composed
from penstock.passes.rewriting import Rewritten


def fuse_pointwise(graph: Graph) -> Rewritten:
    """Return the graph with each maximal chain of pointwise operators on the CPU fused."""
    return fuse_composed(graph, "fuse_pointwise")
