"""``Checkpoint``: the states of readers and generators, from which a program can continue."""

from __future__ import annotations

from penstock.dynamic._checkpoints import Checkpoint
from penstock.dynamic._eval_contexts import EvalContext

__all__ = ["Checkpoint", "current"]


def current() -> Checkpoint:
    """Return the checkpoint of the current context."""
    return EvalContext.current().checkpoint
