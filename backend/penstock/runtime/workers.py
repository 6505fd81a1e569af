"""The threads on which samples are processed."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

# Below this many elements in total, waking a thread costs more than it saves.
_WORTH_WAKING = 4096


class Parallel(Protocol):
    """Runs ``task(index)`` for each index below ``count``; ``costs`` say how long each may take, in any unit."""

    def __call__(self, task: Callable[[int], None], count: int, costs: Sequence[int] | None = None) -> None: ...


class _Job:
    """One task for several indices, processed by whichever thread is free."""

    def __init__(self, task: Callable[[int], None], order: Sequence[int]) -> None:
        self._task = task
        self._order = order
        self._count = len(order)
        # `next` on a count is atomic, so it needs no lock.
        self._taken = itertools.count()
        self._finished = itertools.count(1)
        self._done = threading.Event()
        if not order:
            self._done.set()
        self._errors: list[tuple[int, BaseException]] = []

    def work(self) -> None:
        """Processes indices until none is left."""
        while (turn := next(self._taken)) < self._count:
            index = self._order[turn]
            try:
                self._task(index)
            except BaseException as error:
                self._errors.append((index, error))
            if next(self._finished) == self._count:
                self._done.set()

    def is_done(self) -> bool:
        """Whether all indices are processed."""
        return self._done.is_set()

    def wait(self) -> None:
        """Works as long as there is an index left, and returns when all are processed; raises the error of the first one
        that failed."""
        self.work()
        self._done.wait()
        # Other threads may refer to this job a little longer; what it has worked on is not to wait for them.
        self._task = _nothing
        if self._errors:
            try:
                raise min(self._errors, key=lambda pair: pair[0])[1]
            finally:
                # The error's traceback refers to this frame, and would keep itself and the frames above alive.
                self._errors.clear()


def _nothing(_: int) -> None:
    """The task of a job that is done."""


class WorkerPool:
    """Threads that share the samples of a batch; the calling thread works, too.

    Args:
        num_threads: how many work at a time, including the caller.
        affinity: CPU cores to bind threads to, in turn; None: not bound.
    """

    def __init__(self, num_threads: int, affinity: Sequence[int] | None = None) -> None:
        self.num_threads = max(num_threads, 1)
        self._affinity = affinity
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def parallel(self, task: Callable[[int], None], count: int, costs: Sequence[int] | None = None) -> None:
        """Runs ``task(index)`` for each index below ``count``, the most expensive first."""
        if self.num_threads == 1 or count < 2 or (costs is not None and sum(costs) < _WORTH_WAKING):
            for index in range(count):
                task(index)
            return
        self.start(task, count, costs).wait()

    def start(self, task: Callable[[int], None], count: int, costs: Sequence[int] | None = None) -> _Job:
        """The same, on the other threads, until the job that is returned is waited for."""
        order = sorted(range(count), key=costs.__getitem__, reverse=True) if costs is not None else range(count)
        job = _Job(task, order)
        helpers = min(count, self.num_threads) - 1
        if helpers > 0:
            with self._starting:
                if not self._threads:
                    self._start_threads()
        for _ in range(helpers):
            self._jobs.put(job)
        return job

    def _start_threads(self) -> None:
        for number in range(1, self.num_threads):
            thread = threading.Thread(target=self._serve, args=(number,), name=f"penstock-worker-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, number: int) -> None:
        if self._affinity:
            os.sched_setaffinity(0, {self._affinity[number % len(self._affinity)]})
        while (job := self._jobs.get()) is not None:
            job.work()
            del job  # releases the last task's data before the next one arrives

    def close(self) -> None:
        """Ends the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        self._threads = []
