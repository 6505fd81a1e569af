"""The open branches while a pipeline with conditionals is being defined."""

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
        splits: the splits of the nodes that are used inside: their parts for True and for False.
        sites: the user's lines of the statement, for messages.
        produced: names of the nodes made inside each branch, which are not split again.
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
        """Return the part of ``node`` with the samples of the open branches."""
        level = self._level_of(node)
        for branch in self.branches[level:]:
            assert branch.side is not None
            node = self._split(branch, node)[not branch.side]
        return node

    def branch_batch(self) -> DataNode | None:
        """Return the innermost open branch's part of its predicate; None outside branches."""
        open_branches = [branch for branch in self.branches if branch.side is not None]
        return self.enter_branch(open_branches[-1].predicate) if open_branches else None

    def _level_of(self, node: DataNode) -> int:
        """Return how many of the open branches the node is already in."""
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
        """Call an operator as if just before entering ``branch``."""
        inner = self.branches
        self.branches = inner[: inner.index(branch)]
        try:
            device = inputs[0].device
            return call_operator(operator, inputs, arguments, device=device, sites=branch.sites)
        finally:
            self.branches = inner

    def register(self, op: OpNode) -> None:
        """Record the branch of a new operator's outputs: the innermost branch of its inputs.

        An operator without inputs makes whole batches: it is outside all branches and is split where it is used.
        """
        inputs = list(op.all_inputs())
        level = max((self._level_of(node) for node in inputs), default=0)
        if level:
            branch = self.branches[level - 1]
            assert branch.side is not None
            branch.produced[branch.side].update(node.name for node in op.outputs)
