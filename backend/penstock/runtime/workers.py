"""The threads that process the samples of a batch."""

from __future__ import annotations

import itertools
import math
import os
import queue
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

# With fewer elements than this in total, waking a thread costs more than it saves.
_MIN_ELEMENTS_TO_WAKE_THREADS = 4096
# In seconds. With shorter tasks, threads spend their time waiting for the GIL, which a thread needs between two tasks.
_MIN_SECONDS_TO_SHARE_TASK = 15e-6
# Which batches have their first tasks timed: the first three, in which kernels may be compiled, and then every 64th.
_NUM_FIRST_TIMED_BATCHES, _TIMED_BATCH_INTERVAL = 3, 64
_MAX_TIMING_SECONDS = 200e-6


class Pace:
    """How long the tasks of an operator take.

    Attributes:
        seconds: the measured duration of one unit of cost, in seconds.
    """

    def __init__(self) -> None:
        self.seconds = math.inf
        self._batches = 0

    def is_due(self) -> bool:
        """Return whether to time the first tasks of the next batch."""
        self._batches += 1
        return self._batches <= _NUM_FIRST_TIMED_BATCHES or self._batches % _TIMED_BATCH_INTERVAL == 0

    def note(self, seconds: float, cost: int) -> None:
        """Update the pace from the measured duration of work of some cost."""
        new = seconds / max(cost, 1)
        self.seconds = min(self.seconds, new) if self._batches <= _NUM_FIRST_TIMED_BATCHES else new


class Parallel(Protocol):
    """Runs ``task(index)`` for each index below ``count``; ``costs``: how long each task may take, in any unit."""

    def __call__(self, task: Callable[[int], None], count: int, costs: Sequence[int] | None = None) -> None: ...


class _Job:
    """A task to run for several indices; each index is processed by the next thread that is free."""

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
        """Process indices until none is left."""
        while (turn := next(self._taken)) < self._count:
            index = self._order[turn]
            try:
                self._task(index)
            except BaseException as error:
                self._errors.append((index, error))
            if next(self._finished) == self._count:
                self._done.set()

    def is_done(self) -> bool:
        """Return whether all indices are processed."""
        return self._done.is_set()

    def wait(self) -> None:
        """Help until all indices are processed, and wait for the other threads; raise the error of the lowest failed index."""
        self.work()
        self._done.wait()
        # Other threads may refer to this job a little longer, which must not keep the task's data alive.
        self._task = _nothing
        if self._errors:
            try:
                raise min(self._errors, key=lambda pair: pair[0])[1]
            finally:
                # Removed, as the error's traceback refers to this frame: the error would keep itself and the frames above alive.
                self._errors.clear()


def _nothing(_: int) -> None:
    """Do nothing: the task of a finished job."""


def _timed(task: Callable[[int], None], count: int, costs: Sequence[int], pace: Pace) -> int:
    """Run tasks for a short time and update ``pace``; return the number of tasks that ran."""
    begin, elapsed, done = perf_counter(), 0.0, 0
    while done < count and elapsed < _MAX_TIMING_SECONDS:
        task(done)
        done += 1
        elapsed = perf_counter() - begin
    pace.note(elapsed, sum(costs[:done]))
    return done


class WorkerPool:
    """Threads that share the samples of a batch; the calling thread is one of them.

    Args:
        num_threads: the number of threads, including the calling one.
        affinity: the CPU cores to bind threads to, one thread after another; None: threads are not bound.
    """

    def __init__(self, num_threads: int, affinity: Sequence[int] | None = None) -> None:
        self.num_threads = max(num_threads, 1)
        self.affinity = affinity
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def parallel(
        self,
        task: Callable[[int], None],
        count: int,
        costs: Sequence[int] | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Run ``task(index)`` for each index below ``count``. Threads that share tasks take the most expensive ones first.

        With ``costs`` and ``pace``, threads share the tasks only if that saves time.
        """
        if costs is None or pace is None or self.num_threads == 1 or count < 2:
            self._run(task, 0, count, costs, math.inf)
            return
        done = 0
        if pace.is_due():
            done = _timed(task, count, costs, pace)
        self._run(task, done, count, costs, pace.seconds)

    def _run(
        self, task: Callable[[int], None], first: int, count: int, costs: Sequence[int] | None, seconds: float
    ) -> None:
        """Run the tasks with the indices from ``first`` to ``count``, exclusive."""
        if not self._is_shared(count - first, None if costs is None else costs[first:], seconds):
            for index in range(first, count):
                task(index)
        elif first:
            self.start(lambda number: task(first + number), count - first, costs[first:] if costs else None).wait()
        else:
            self.start(task, count, costs).wait()

    def _is_shared(self, count: int, costs: Sequence[int] | None, seconds: float) -> bool:
        """Return whether threads share tasks that take ``seconds`` per unit of cost."""
        if self.num_threads == 1 or count < 2:
            return False
        if costs is None:
            return True
        total = sum(costs)
        return total >= _MIN_ELEMENTS_TO_WAKE_THREADS and seconds * total >= _MIN_SECONDS_TO_SHARE_TASK * count

    def start(self, task: Callable[[int], None], count: int, costs: Sequence[int] | None = None) -> _Job:
        """Start the tasks on the other threads; return a job to wait for."""
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
        if self.affinity:
            os.sched_setaffinity(0, {self.affinity[number % len(self.affinity)]})
        while (job := self._jobs.get()) is not None:
            job.work()
            del job  # release the task's data before waiting for the next job

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        self._threads = []
