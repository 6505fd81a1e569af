"""The pipeline that is being defined, or runs, on this thread: operators called now belong to it."""

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
    """Make a pipeline, returned by ``reference``, the current one until :func:`pop`."""
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
    """Makes a pipeline the current one for Python functions it calls, without keeping it alive; as often as it is entered.

    Args:
        reference: returns the pipeline.
        scope: its definition's scope.
    """

    def __init__(self, reference: Callable[[], Any], scope: Scope) -> None:
        self._reference = reference
        self._scope = scope

    def __enter__(self) -> None:
        push(self._reference, self._scope)

    def __exit__(self, *_: object) -> None:
        pop()
