"""The scope in which operators are called: it names them, and knows the open branches."""

from __future__ import annotations

import itertools
import threading
from types import CodeType
from typing import Any, Protocol

from penstock.errors import as_imported
from penstock.graph.nodes import DataNode, OpNode


class Conditions(Protocol):
    """The open branches of a pipeline with conditionals."""

    def enter_branch(self, node: DataNode) -> DataNode:
        """Return the part of ``node`` that contains the samples of the open branches."""

    def branch_batch(self) -> DataNode | None:
        """Return a node with one sample for each sample of the open branches; None if no branch is open."""

    def register(self, op: OpNode) -> None:
        """Record to which branch a new operator's outputs belong."""


class Scope:
    """The state that all operator calls in the definition of one pipeline share.

    Attributes:
        tracer: the code that calls the user's graph-defining function; frames above it are not the user's.
        conditions: the open branches, if conditionals are enabled.
        sinks: the operators that stay in the graph although no output depends on them.
        debug: the object that runs operators when they are called, in debug mode.
        detached: whether operators are called outside any pipeline, and may become part of several pipelines.
    """

    def __init__(self, detached: bool = False) -> None:
        self.detached = detached
        self._counter = itertools.count()
        self.tracer: CodeType | None = None
        self.conditions: Conditions | None = None
        self.sinks: list[DataNode] = []
        self.debug: Any = None

    def next_name(self, class_name: str) -> str:
        """Return a new name for an operator that the user did not name."""
        return f"__{class_name}_{'detached_' if self.detached else ''}{next(self._counter)}"

    def enter_branch(self, node: DataNode) -> DataNode:
        """Return the part of ``node`` that contains the samples of the open branches, if conditionals are enabled."""
        return node if self.conditions is None else self.conditions.enter_branch(node)

    def branch_batch(self) -> DataNode | None:
        """Return a node with one sample for each sample of the open branches; None if no branch is open."""
        return None if self.conditions is None else self.conditions.branch_batch()

    def register(self, op: OpNode) -> None:
        """Record a new operator; raise RuntimeError if it must be preserved, but there is no pipeline that could do so."""
        if self is _outside and op.arguments.get("preserve"):
            raise no_current_pipeline(op.display_name)
        if self.conditions is not None:
            self.conditions.register(op)
        if op.preserved:
            self.sinks.extend(op.outputs[:1])


class _Local(threading.local):
    def __init__(self) -> None:
        self.scopes: list[Scope] = []


_local = _Local()
_outside = Scope(detached=True)


def scope_stack() -> list[Scope]:
    """Return the open scopes of this thread, innermost last."""
    return _local.scopes


def no_current_pipeline(display: str) -> RuntimeError:
    """Return the error for an operator that must be called inside the definition of a pipeline."""
    return RuntimeError(
        f"Current Pipeline not set!\n`{as_imported(display)}`, as an operator with side-effects, must be used inside `define_graph` "
        "or a `pipeline_def`, or current pipeline must be explicitly set: in a `with pipeline:` block, or by `Pipeline.push_current`."
    )


def current_scope() -> Scope:
    """Return the innermost open scope, or the scope of operators that are called outside any pipeline."""
    scopes = scope_stack()
    return scopes[-1] if scopes else _outside
