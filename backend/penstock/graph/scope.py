"""The scope in which operators are being called: who numbers them and which branches are open."""

from __future__ import annotations

import itertools
import threading
from types import CodeType
from typing import Any, Protocol

from penstock.graph.nodes import DataNode, OpNode


class Conditions(Protocol):
    """The open branches of a pipeline with conditionals."""

    def enter_branch(self, node: DataNode) -> DataNode:
        """The part of ``node`` that the samples of the open branches have."""

    def branch_batch(self) -> DataNode | None:
        """A node that has a sample for each one in the open branches; None outside of branches."""

    def register(self, op: OpNode) -> None:
        """Notes where a new operator's outputs lie."""


class Scope:
    """What the calls inside one pipeline's definition share.

    Attributes:
        tracer: the code that calls the user's graph-defining function; frames above it are not the user's.
        conditions: the open branches, where conditionals are enabled.
        sinks: operators that stay although no output depends on them.
        debug: evaluates operators as they are called, where the pipeline runs in debug mode.
        detached: operators are called outside of any pipeline, and may become part of several.
    """

    def __init__(self, detached: bool = False) -> None:
        self.detached = detached
        self._counter = itertools.count()
        self.tracer: CodeType | None = None
        self.conditions: Conditions | None = None
        self.sinks: list[DataNode] = []
        self.debug: Any = None

    def next_name(self, class_name: str) -> str:
        """A name for an operator that the user did not name."""
        return f"__{class_name.lstrip('_')}_{'detached_' if self.detached else ''}{next(self._counter)}"

    def enter_branch(self, node: DataNode) -> DataNode:
        """The node as it is seen inside the open branches."""
        return node if self.conditions is None else self.conditions.enter_branch(node)

    def branch_batch(self) -> DataNode | None:
        """A node that has a sample for each one in the open branches; None outside of branches."""
        return None if self.conditions is None else self.conditions.branch_batch()

    def register(self, op: OpNode) -> None:
        """Notes a new operator; raises RuntimeError where it is to be preserved and there is no pipeline that could do so."""
        if self is _outside and op.arguments.get("preserve"):
            raise no_current_pipeline(op.display_name)
        if self.conditions is not None:
            self.conditions.register(op)
        if op.preserved:
            self.sinks.extend(op.outputs[:1])


_local = threading.local()
_outside = Scope(detached=True)


def scope_stack() -> list[Scope]:
    """The open scopes of this thread, innermost last."""
    if not hasattr(_local, "scopes"):
        _local.scopes = []
    return _local.scopes


def no_current_pipeline(display: str) -> RuntimeError:
    """The error of an operator that needs to know its pipeline when it is called."""
    return RuntimeError(
        f"Current Pipeline not set! `{display}`, as an operator with side-effects, must be used where a pipeline is being "
        "defined: inside `define_graph` or a `pipeline_def`, in a `with pipeline:` block, or after `Pipeline.push_current`."
    )


def current_scope() -> Scope:
    """The innermost open scope, or the one of operators that are called outside of any pipeline."""
    scopes = scope_stack()
    return scopes[-1] if scopes else _outside
