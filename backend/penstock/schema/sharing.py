"""Runs the samples of a batch on several threads, or one by one on the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from penstock.kernels.cpu.blocks import Threads

# The smallest number of elements for which waking a thread pays off.
_MIN_ELEMENTS_TO_SHARE = 1 << 15


def run_in_order(task: Callable[[int], None], count: int, _costs: Sequence[int] | None = None) -> None:
    """Run ``task`` for each index on the calling thread, like a pool with one thread."""
    for index in range(count):
        task(index)


def share(threads: Threads, work: Callable[[int, int], object], sizes: np.ndarray) -> None:
    """Call ``work(begin, end)`` for ranges of samples, on several threads if there is enough to do.

    Args:
        threads: the threads to use, such as a workspace.
        work: computes the samples of a range.
        sizes: number of elements of each sample.
    """
    count = len(sizes)
    shares = (
        1 if threads.num_threads == 1 else min(threads.num_threads, count, int(sizes.sum()) // _MIN_ELEMENTS_TO_SHARE)
    )
    if shares < 2:
        work(0, count)
        return
    bounds = [count * number // shares for number in range(shares + 1)]
    threads.parallel(lambda number: work(bounds[number], bounds[number + 1]), shares)


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
