"""The branches that are open while a pipeline with conditionals is being defined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.graph.calls import call_operator
from penstock.graph.nodes import DataNode, OpNode
from penstock.graph.origin import CallSite

Key = tuple[str, str]


@dataclass(eq=False)
class Branch:
    """An `if` statement whose branches are being traced.

    Attributes:
        predicate: decides which samples go to which branch.
        side: the branch that is open: True, False, or None between the branches.
        splits: for each node that is used inside, its parts for True and for False.
        sites: the user's lines of the statement, for messages.
        produced: the names of the nodes made inside each branch, which are not split again there.
    """

    predicate: DataNode
    side: bool | None = None
    sites: tuple[CallSite, ...] | None = None
    splits: dict[Key, tuple[DataNode, DataNode]] = field(default_factory=dict)
    produced: dict[bool, set[str]] = field(default_factory=lambda: {True: set(), False: set()})


class ConditionStack:
    """The open branches, outermost first."""

    def __init__(self) -> None:
        self.branches: list[Branch] = []

    def enter_branch(self, node: DataNode) -> DataNode:
        """Return the part of ``node`` that contains the samples of the open branches."""
        level = self._level_of(node)
        for branch in self.branches[level:]:
            assert branch.side is not None
            node = self._split(branch, node)[not branch.side]
        return node

    def branch_batch(self) -> DataNode | None:
        """Return the part of the innermost open branch's predicate that contains its samples; None if no branch is open."""
        open_branches = [branch for branch in self.branches if branch.side is not None]
        return self.enter_branch(open_branches[-1].predicate) if open_branches else None

    def _level_of(self, node: DataNode) -> int:
        """Return the number of open branches, from the outermost on, that the node is already in."""
        for level in range(len(self.branches), 0, -1):
            branch = self.branches[level - 1]
            if branch.side is not None and node.name in branch.produced[branch.side]:
                return level
        return 0

    def _split(self, branch: Branch, node: DataNode) -> tuple[DataNode, DataNode]:
        key = (node.name, node.device)
        if key not in branch.splits:
            parts = self.outside(
                branch, "_conditional__Split", (node,), {"predicate": branch.predicate, "_if_stmt": True}
            )
            branch.splits[key] = (parts[0], parts[1])
            for side, part in zip((True, False), parts):
                branch.produced[side].add(part.name)
        return branch.splits[key]

    def outside(self, branch: Branch, operator: str, inputs: Any, arguments: dict[str, Any]) -> Any:
        """Call an operator as if just before ``branch`` was entered."""
        inner = self.branches
        self.branches = inner[: inner.index(branch)]
        try:
            device = inputs[0].device
            return call_operator(operator, inputs, arguments, device=device, sites=branch.sites)
        finally:
            self.branches = inner

    def register(self, op: OpNode) -> None:
        """Record to which branch a new operator's outputs belong: the innermost one that an input belongs to.

        An operator without inputs makes whole batches: its outputs are outside all branches, and are split where they are used.
        """
        inputs = list(op.all_inputs())
        level = max((self._level_of(node) for node in inputs), default=0)
        if level:
            branch = self.branches[level - 1]
            assert branch.side is not None
            branch.produced[branch.side].update(node.name for node in op.outputs)
