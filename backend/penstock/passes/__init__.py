"""How a graph is improved before it runs: one ordered list of rewrites, none of which changes a result."""

from __future__ import annotations

from collections.abc import Callable

from penstock.graph import Graph

Pass = Callable[[Graph], Graph]


def ordered_passes() -> list[Pass]:
    """The passes in the order in which they run."""
    from penstock.passes.fold_constants import fold_constants
    from penstock.passes.fuse import fuse
    from penstock.passes.prune import prune

    return [prune, fold_constants, fuse]


def improve(graph: Graph) -> Graph:
    """The graph after all passes."""
    for rewrite in ordered_passes():
        graph = rewrite(graph)
    return graph


__all__ = ["Pass", "improve", "ordered_passes"]
