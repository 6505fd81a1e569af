"""Takes chains of operators that compute element by element through memory once."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.passes.fuse import fuse_composed
from penstock.passes.rewriting import Rewritten


def fuse_pointwise(graph: Graph) -> Rewritten:
    """The graph in which chains of pointwise operators on the CPU, as long as they can be, are one operator each."""
    return fuse_composed(graph, "fuse_pointwise")
