"""Decodes only the region of each image that is used."""

from __future__ import annotations

from penstock.graph import Graph
from penstock.passes.fuse import fuse_composed
from penstock.passes.rewriting import Rewritten


def decode_regions(graph: Graph) -> Rewritten:
    """The graph in which a decoder and the windows behind it are one, where the whole image is used for nothing else."""
    return fuse_composed(graph, "fuse", only_windows=True)
