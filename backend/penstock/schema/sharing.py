"""Runs the samples of a batch on several threads, or one by one on the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


def run_in_order(task: Callable[[int], None], count: int, _costs: Sequence[int] | None = None) -> None:
    """Run ``task`` for each index on the calling thread, like a pool with one thread."""
    for index in range(count):
        task(index)


class Started(Protocol):
    """Work that has been started on other threads."""

    def is_done(self) -> bool:
        """Return whether all work is done."""

    def wait(self) -> None:
        """Run tasks that no thread has started yet, then wait for the others; raise the first error."""


class Postponed:
    """Work that runs only when it is waited for; it has the interface of a pool's work."""

    def __init__(self, task: Callable[[int], None], count: int, _costs: Sequence[int] | None = None) -> None:
        self._task, self._count = task, count

    def is_done(self) -> bool:
        return not self._count

    def wait(self) -> None:
        run_in_order(self._task, self._count)
        self._count = 0
