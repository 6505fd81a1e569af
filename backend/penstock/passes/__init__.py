"""Optimizes graphs before they run, by an ordered list of named rewrites, none of which changes a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import did_you_mean
from penstock.graph import Graph
from penstock.passes.rewriting import Change, Rewritten

Pass = Callable[[Graph], Rewritten]


@dataclass(frozen=True)
class Applied:
    """The effect of one pass.

    Attributes:
        name: the pass's name.
        before, after: the graph before and after the pass.
        changes: the changes, in the order in which they were made.
    """

    name: str
    before: Graph
    after: Graph
    changes: tuple[Change, ...]


def ordered_passes() -> dict[str, Pass]:
    """Return the passes by name, in the order in which they run."""
    from penstock.passes.decode_regions import decode_regions
    from penstock.passes.fold_constants import fold_constants
    from penstock.passes.fuse import fuse
    from penstock.passes.fuse_pointwise import fuse_pointwise
    from penstock.passes.prune import prune
    from penstock.passes.share_common import share_common

    return {
        rewrite.__name__: rewrite
        for rewrite in (prune, fold_constants, share_common, decode_regions, fuse, fuse_pointwise)
    }


def chosen_passes(names: Sequence[str] | None) -> dict[str, Pass]:
    """Return the passes with these names, in the order in which they run; None: all passes.

    Raises:
        TypeError: ``names`` is not a list of names.
        ValueError: there is no pass with one of the names.
    """
    known = ordered_passes()
    if names is None:
        return known
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"`passes` must be a list of names, or None for all; got {names!r}")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"There is no pass {', '.join(map(repr, unknown))}.{did_you_mean(unknown[0], known)} The passes are: {', '.join(known)}"
        )
    return {name: rewrite for name, rewrite in known.items() if name in names}


def apply_passes(graph: Graph, names: Sequence[str] | None = None) -> Iterator[Applied]:
    """Run the passes with these names in order; yield the effect of each. None: all passes."""
    for name, rewrite in chosen_passes(names).items():
        before = graph
        graph, changes = rewrite(before)
        yield Applied(name, before, graph, changes)


def improve(graph: Graph, names: Sequence[str] | None = None) -> Graph:
    """Return the graph after the passes with these names; None: after all passes."""
    for applied in apply_passes(graph, names):
        graph = applied.after
    return graph


__all__ = ["Applied", "Change", "Pass", "Rewritten", "apply_passes", "chosen_passes", "improve", "ordered_passes"]
