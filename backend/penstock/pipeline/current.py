"""The thread's current pipeline, which is being defined or runs; operators called on the thread belong to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from penstock.graph import Scope, scope_stack


class _Local(threading.local):
    def __init__(self) -> None:
        self.pipelines: list[Callable[[], object]] = []


_local = _Local()


def push(reference: Callable[[], object], scope: Scope) -> None:
    """Make the pipeline that ``reference`` returns the current one, until :func:`pop`."""
    _local.pipelines.append(reference)
    scope_stack().append(scope)


def pop() -> None:
    """Undo :func:`push`."""
    _local.pipelines.pop()
    scope_stack().pop()


def innermost() -> Any:
    """Return the current pipeline, or None."""
    return _local.pipelines[-1]() if _local.pipelines else None


class AsCurrent(AbstractContextManager[None]):
    """Makes a pipeline the current one while the context lasts, without keeping it alive; can be entered repeatedly.

    Args:
        reference: returns the pipeline, or None if it no longer exists.
        scope: the scope of the pipeline's definition.
    """

    def __init__(self, reference: Callable[[], Any], scope: Scope) -> None:
        self._reference = reference
        self._scope = scope

    def __enter__(self) -> None:
        push(self._reference, self._scope)

    def __exit__(self, *_: object) -> None:
        pop()
