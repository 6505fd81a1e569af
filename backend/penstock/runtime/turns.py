"""Batches that overlap: each operator works on one batch at a time, and on the batches in their order."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from penstock.runtime.plan import Step, Transfer


class Turns:
    """Whose turn it is at each step of a plan.

    Several threads run the same steps, each for a batch of its own, like cars on an assembly line: a batch may enter a
    step when the batch before it has left. Steps whose operators are reentrant, and copies, are free for all.

    Args:
        steps: of the plan.
    """

    def __init__(self, steps: Sequence[Step | Transfer]) -> None:
        self._ordered = [isinstance(step, Step) and not step.operator.reentrant for step in steps]
        sources = [i for i, step in enumerate(steps) if isinstance(step, Step) and step.operator.is_source]
        # When the last source has given its part of a batch, the sources can tell of the next one.
        self._last_source = max(sources, default=None)
        self._condition = threading.Condition()
        self.reset()

    def reset(self) -> None:
        """The next batch is number 0."""
        self._next = [0] * len(self._ordered)

    def wait_for_sources(self, batch: int) -> None:
        """Returns when the sources have given all before this batch."""
        if self._last_source is not None:
            self._wait(self._last_source, batch)

    def enter(self, step: int, batch: int) -> None:
        """Returns when it is this batch's turn."""
        if self._ordered[step]:
            self._wait(step, batch)

    def leave(self, step: int, batch: int) -> None:
        """It is the next batch's turn."""
        if self._ordered[step]:
            with self._condition:
                self._next[step] = batch + 1
                self._condition.notify_all()

    def give_up(self, batch: int) -> None:
        """Leaves the steps that this batch has not come to, each in its turn."""
        for step in range(len(self._ordered)):
            if self._ordered[step] and self._next[step] <= batch:
                self._wait(step, batch)
                self.leave(step, batch)

    def _wait(self, step: int, batch: int) -> None:
        if self._next[step] < batch:
            with self._condition:
                self._condition.wait_for(lambda: self._next[step] >= batch)
