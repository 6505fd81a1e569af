"""Runs a pipeline's batches ahead of the consumer, on a thread of its own or on the caller's."""

from __future__ import annotations

import atexit
import contextlib
import functools
import queue
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from time import perf_counter

from penstock.errors import without_frames
from penstock.runtime.batches import Batch, Result
from penstock.runtime.executor import Executor
from penstock.runtime.plan import Plan
from penstock.runtime.tolerance import SkippedSamples, tolerated
from penstock.runtime.trace import Kind
from penstock.schema.input_operator import InputOperator
from penstock.schema.tolerance import RAISE


class _Event(Enum):
    """A message to the prefetching thread."""

    SCHEDULED = auto()
    WANTED = auto()
    ENDED = auto()


# How long the prefetching thread waits for the next batch to be scheduled before it completes those in flight.
_IDLE_SECONDS = 0.002


_prefetching: weakref.WeakSet[PrefetchingExecutor] = weakref.WeakSet()


@atexit.register
def _finish_batches() -> None:
    """Ends prefetching threads: one inside a C++ library would abort the interpreter at its exit."""
    for executor in list(_prefetching):
        executor.finish(timeout=5)


class PrefetchingExecutor(Executor):
    """Runs scheduled batches ahead of the consumer, who takes them in order.

    Args:
        plan, max_batch_size, num_threads, device_id, affinity, on_error, skipped: see :class:`Executor`.
        depth: batches prefetched by a thread, ahead of the consumer; 0: each runs when scheduled. A plan that runs
            entirely on the GPU needs no thread: its work is asynchronous.
    """

    def __init__(
        self,
        plan: Plan,
        max_batch_size: int,
        num_threads: int,
        device_id: int | None,
        depth: int,
        affinity: Sequence[int] | None = None,
        on_error: str = RAISE,
        skipped: SkippedSamples | None = None,
    ) -> None:
        super().__init__(plan, max_batch_size, num_threads, device_id, affinity, on_error, skipped)
        self._tolerates = tolerated((step.node for step in plan.operators), on_error)
        self._depth = depth
        self._is_threaded = depth > 0 and not plan.is_cheap_on_host
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        # When the last run began and returned, without a thread.
        self._began_at = self._returned_at = perf_counter()
        # Counts of batches that the prefetching thread has completed, and that the consumer has requested.
        self._completed = self._wanted = 0
        self._results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        self._begun: deque[Batch | Result | BaseException] = deque()
        self._thread: threading.Thread | None = None
        self._finishing = False
        self._closed = False

    def schedule(self, completes: bool = False) -> None:
        """Starts the next batch: on the prefetching thread, or at once if there is none.

        If another thread has closed this executor meanwhile, the batch fails.

        Args:
            completes: the oldest batch is taken next: where there is no thread, it is completed, too.
        """
        if not self._is_threaded and self._depth:
            # The first batches show what can be started early; what other steps take is known.
            for step in self.plan.early:
                self._is_threaded = self._is_threaded or not step.operator.is_cheap_on_host
        if not self._is_threaded:
            try:
                begun = self._begin_here(completes)
            except Exception as error:
                self._begun.append(error)
            else:
                self._begun.append(begun)
            return
        if self._closed:
            self._results.put(_closed_while_waiting())
            return
        if self._thread is None:
            self._finishing = self._closed
            self._thread = threading.Thread(target=self._prefetch, name="penstock-prefetch", daemon=True)
            self._sleeps_for_results = True
            self._thread.start()
            _prefetching.add(self)
        self._events.put(_Event.SCHEDULED)

    def _begin_here(self, completes: bool) -> Batch | Result:
        """Starts the next batch on this thread; the arguments are those of :meth:`schedule`."""
        oldest_first = self._consumer_is_slower() and self._is_decoded()
        with self._surroundings():
            self._wait_for_data()
            begun = self.begin(tolerant=self._tolerates, meanwhile=self._complete_first if oldest_first else None)
            if completes and not self._begun:
                return self.complete(begun)
            if completes:
                self._complete_first()
            return begun

    def _prefetch(self) -> None:
        while self._next_event() and not self._finishing:
            pass
        if self._closed:
            self._drop()
            # A thread that waits for a dropped batch must not wait forever.
            self._results.put(_closed_while_waiting())
            self.release()

    def _drop(self) -> None:
        """Drops batches that nobody will take; errors stay, without frames, which refer to this executor."""
        for begun in self._begun:
            if isinstance(begun, Batch):
                begun.end()
        self._begun.clear()
        errors = []
        with contextlib.suppress(queue.Empty):
            # Another thread may take the last one.
            while True:
                result = self._results.get_nowait()
                if isinstance(result, BaseException):
                    errors.append(without_frames(result))
        for error in errors:
            self._results.put(error)

    def _next_event(self) -> bool:
        """Starts the batch that is scheduled next, or completes one: each is only completed once the next one is
        started.

        Returns False when the thread should end.
        """
        try:
            with self.span("consumer", Kind.NO_DEMAND):
                event = self._events.get(timeout=_IDLE_SECONDS if self._begun else None)
        except queue.Empty:
            self._complete_begun()
            return True
        if event is _Event.SCHEDULED:
            if self._begun and not self._is_fed():
                # The feeding thread may be waiting for the batch in flight.
                self._complete_begun()
            try:
                self._wait_for_data()
                with self._surroundings():
                    self._begun.append(self.begin(tolerant=self._tolerates))
            except BaseException as error:
                self._begun.append(error)
            if not self.plan.early:
                self._complete_begun()
        elif event is _Event.WANTED:
            self._wanted += 1
        while self._begun and self._completed < self._wanted:
            self._complete_oldest()
        return event is not _Event.ENDED

    def _consumer_is_slower(self) -> bool:
        """Whether the consumer took longer for the last batch than this executor; notes that a run begins."""
        began, self._began_at = self._began_at, perf_counter()
        return self._began_at - self._returned_at > self._returned_at - began

    def _is_decoded(self) -> bool:
        """Whether the oldest batch waits for nothing, and is not completed yet.

        If so, it is completed while the next one is started, and the GPU has work. Otherwise the next one comes first, to keep the
        decoders at work.
        """
        oldest = self._begun[0] if self._begun else None
        if not isinstance(oldest, Batch) or not oldest.begun:
            return False
        return all([step.operator.is_ready(oldest.begun[step.node.name]) for step in self.plan.early])

    def _complete_first(self) -> None:
        """Completes the oldest batch, inside :meth:`_surroundings`; others may take it later, or what it raised."""
        oldest = self._begun[0]
        if isinstance(oldest, Batch):
            try:
                self._begun[0] = self.complete(oldest)
            except Exception as error:
                self._begun[0] = error

    def _complete_begun(self) -> None:
        while self._begun:
            self._complete_oldest()

    def _complete_oldest(self) -> None:
        self._completed += 1
        try:
            self._results.put(self._completed_of(self._begun.popleft()))
        except BaseException as error:
            self._results.put(error)

    def _completed_of(self, begun: Batch | Result | BaseException) -> Result:
        """The result of a batch; raises the error with which its start failed."""
        if isinstance(begun, Result):
            return begun
        if isinstance(begun, Batch):
            with self._surroundings():
                return self.complete(begun)
        try:
            raise begun
        finally:
            # As in `next_result`.
            del begun

    def _is_fed(self) -> bool:
        return all(operator.has_data() for operator in self.input_operators.values())

    def _wait_for_data(self) -> None:
        """Waits until the blocking sources have data."""
        for name, operator in self._blocking:
            with self.span(name, Kind.NO_INPUT):
                operator.wait_for_data(lambda: self._finishing)

    @property
    def batches_ahead(self) -> int:
        """The number of batches beyond the prefetch depth that are worth scheduling."""
        ahead = 0
        if self._depth > 1 and not self._is_threaded:
            for step in self.plan.early:
                ahead = max(ahead, step.operator.batches_ahead)
        return ahead

    @functools.cached_property
    def _blocking(self) -> list[tuple[str, InputOperator]]:
        """The input operators that wait for data."""
        return [(name, operator) for name, operator in self.input_operators.items() if operator.args["blocking"]]

    def next_result(self) -> Result:
        """The oldest scheduled batch; waits for it, and raises what its run raised."""
        if self.trace is not None:
            self.trace.consumed(self._results.qsize())
        if not self._is_threaded:
            try:
                return self._completed_of(self._begun.popleft())
            finally:
                self._returned_at = perf_counter()
        self._events.put(_Event.WANTED)
        with self.span("pipeline", Kind.NO_BATCH):
            result = self._results.get()
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                # An error referenced from a frame of its own traceback would keep everything those frames refer to
                # alive.
                del result
        return result

    def close(self, timeout: float | None = None) -> None:
        """Ends the threads; batches that were not taken are dropped.

        Args:
            timeout: how long to wait for a batch in flight, in seconds; afterwards its thread ends by itself.
        """
        self._closed = True
        self.finish(timeout)
        if self._thread is None:
            self._drop()
            self.release()

    def finish(self, timeout: float | None = None) -> None:
        """Ends the prefetching thread after its current batch, without waiting for data any longer."""
        self._finishing = True
        for operator in self.input_operators.values():
            operator.wake()
        thread = self._thread
        if thread is None:
            return
        self._events.put(_Event.ENDED)
        # Garbage collection may close the pipeline on this very thread.
        if thread is not threading.current_thread():
            thread.join(timeout)
            if not thread.is_alive():
                self._thread = None
                self._sleeps_for_results = False


def _closed_while_waiting() -> RuntimeError:
    return RuntimeError("The pipeline was closed while a batch of it was waited for.")
