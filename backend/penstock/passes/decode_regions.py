"""Decodes only the regions of images that are used."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.passes.fuse import fuse_composed
from penstock.passes.rewriting import Rewritten


def decode_regions(graph: Graph) -> Rewritten:
    """Return the graph with each decoder fused with the crops and slices that follow it, if nothing else uses the image."""
    return fuse_composed(graph, "fuse", only_windows=True)
