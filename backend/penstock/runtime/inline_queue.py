"""The queue whose batches run on the consumer's thread."""

from __future__ import annotations

import threading
from collections import deque
from time import perf_counter

from penstock.runtime.batches import Batch, Result
from penstock.runtime.executor import Executor, Started


class InlineQueue:
    """Starts a batch when it is scheduled, and completes the oldest one when it is taken, on the caller's thread.

    Args:
        executor: runs the batches.
        closed: an event that is set when no further batch is wanted.

    Attributes:
        occupies_host: whether batches need the host, so that a separate thread could run them ahead.
        batches_ahead: how many batches beyond the prefetch depth are worth scheduling, as measured when the last batch was started.
    """

    def __init__(self, executor: Executor, closed: threading.Event) -> None:
        self._executor = executor
        self._closed = closed
        self._started: deque[Started] = deque()
        self.occupies_host = False
        self.batches_ahead = 0
        # The times when the last batch was begun, and when the last result was returned.
        self._began_at = self._returned_at = perf_counter()

    def schedule(self, completes: bool) -> None:
        """Start the next batch; see :meth:`BatchQueue.schedule`."""
        try:
            started = self._start(completes)
        except Exception as error:
            # Not stored in a local variable, which would keep alive everything that the frames in the error's traceback refer to.
            self._started.append(error)
        else:
            self._started.append(started)

    def _start(self, completes: bool) -> Started:
        oldest_first = self._consumer_is_slower() and self._oldest_is_decoded()
        executor = self._executor
        with executor.surroundings():
            executor.wait_for_data(self._closed.is_set)
            batch = executor.begin(
                tolerant=executor.tolerates, meanwhile=self._complete_oldest if oldest_first else None
            )
            if batch.early is not None:
                self.batches_ahead = batch.early.batches_ahead
                self.occupies_host |= batch.early.occupies_host
            if completes and not self._started:
                return executor.complete(batch)
            if completes:
                self._complete_oldest()
            return batch

    def _consumer_is_slower(self) -> bool:
        """Return whether the consumer spent more time on the last batch than this queue; record the start of the next batch."""
        began, self._began_at = self._began_at, perf_counter()
        return self._began_at - self._returned_at > self._returned_at - began

    def _oldest_is_decoded(self) -> bool:
        """Return whether the oldest batch is decoded but not completed yet.

        If so, the GPU still has work, so this batch is completed while the next one is being started. Otherwise the next
        batch is started first, to keep the decoders busy.
        """
        oldest = self._started[0] if self._started else None
        if not isinstance(oldest, Batch) or not oldest.begun:
            return False
        return all([step.operator.is_ready(oldest.begun[step.node.name]) for step in self._executor.plan.early])

    def _complete_oldest(self) -> None:
        """Complete the oldest batch, and store its result or error for the consumer. Call within :meth:`Executor.surroundings`."""
        oldest = self._started[0]
        if isinstance(oldest, Batch):
            try:
                self._started[0] = self._executor.complete(oldest)
            except Exception as error:
                self._started[0] = error

    def next_result(self) -> Result:
        """Return the result of the oldest batch, or raise its error."""
        executor = self._executor
        if executor.trace is not None:
            executor.trace.consumed(0)
        try:
            return executor.result_of(self._started.popleft())
        finally:
            self._returned_at = perf_counter()

    def hand_over(self) -> deque[Started]:
        """Return the started batches, for another queue."""
        started, self._started = self._started, deque()
        return started

    def close(self, timeout: float | None = None) -> None:
        """Wake threads that wait for data, drop the batches, and release the executor."""
        self._executor.wake_inputs()
        self._executor.drop(self._started)
        self._executor.release()
