"""Batches that a separate thread runs ahead of the consumer."""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from enum import Enum, auto

from penstock.errors import without_frames
from penstock.runtime.batches import Result
from penstock.runtime.executor import Executor, Started
from penstock.runtime.trace import Kind

# After this many seconds without another batch being scheduled, the thread completes the batches in flight.
_IDLE_SECONDS = 0.002
# How many seconds the interpreter's exit waits for a batch in flight.
_EXIT_SECONDS = 5.0

_with_threads: weakref.WeakSet[PrefetchQueue] = weakref.WeakSet()


@atexit.register
def finish_batches() -> None:
    """End the threads of all queues: a thread that runs code of a C++ library would abort the process when the interpreter exits."""
    for prefetching in list(_with_threads):
        prefetching.finish(_EXIT_SECONDS)


class _Event(Enum):
    """A message to the thread."""

    SCHEDULED = auto()
    WANTED = auto()
    ENDED = auto()


class PrefetchQueue:
    """Runs scheduled batches on a thread, which completes a batch once the next one has started or the consumer wants it.

    Args:
        executor: runs the batches.
        closed: an event that is set when no further batch is wanted.
        started: batches that were started elsewhere, the oldest first.

    Attributes:
        batches_ahead: how many batches beyond the prefetch depth are worth scheduling: none.
    """

    batches_ahead = 0

    def __init__(self, executor: Executor, closed: threading.Event, started: Iterable[Started] = ()) -> None:
        self._executor = executor
        self._closed = closed
        self._finishing = False
        self._thread: threading.Thread | None = None
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        # Once the thread runs, only the thread may use these.
        self._started = deque(started)
        self._completed = self._wanted = 0

    # -- the consumer's side -----------------------------------------------------------------------------------------

    def schedule(self, completes: bool) -> None:
        """Schedule the next batch, which the thread starts and completes; see :meth:`BatchQueue.schedule`."""
        if self._closed.is_set():
            self._results.put(_closed_while_waiting())
            return
        if self._thread is None:
            # Reset if `finish` ended an earlier thread, unless another thread has closed the queue since the check above.
            self._finishing = self._closed.is_set()
            self._thread = threading.Thread(target=self._run, name="penstock-prefetch", daemon=True)
            self._executor.blocks_on_events = True
            self._thread.start()
            _with_threads.add(self)
        self._events.put(_Event.SCHEDULED)

    def next_result(self) -> Result:
        """Wait for the oldest batch and return its result, or raise its error."""
        executor = self._executor
        if executor.trace is not None:
            executor.trace.consumed(self._results.qsize())
        self._events.put(_Event.WANTED)
        with executor.span("pipeline", Kind.NO_BATCH):
            result = self._results.get()
        try:
            return executor.result_of(result)
        finally:
            # A local variable would keep alive everything that the frames in the error's traceback refer to, this frame included.
            del result

    def close(self, timeout: float | None = None) -> None:
        """End the thread, drop its batches, and release the executor; see :meth:`BatchQueue.close`."""
        self.finish(timeout)
        if self._thread is None:
            self._drop()
            self._executor.release()

    def finish(self, timeout: float | None = None) -> None:
        """End the thread after its current batch; it no longer waits for data."""
        self._finishing = True
        self._executor.wake_inputs()
        thread = self._thread
        if thread is None:
            return
        self._events.put(_Event.ENDED)
        # Garbage collection may close the pipeline on this very thread.
        if thread is not threading.current_thread():
            thread.join(timeout)
            if not thread.is_alive():
                self._thread = None
                self._executor.blocks_on_events = False

    # -- the thread's side -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._next_event() and not self._finishing:
            pass
        if self._closed.is_set():
            self._drop()
            # Another thread may wait for a batch that was dropped: give it an error, so that it does not wait forever.
            self._results.put(_closed_while_waiting())
            self._executor.release()

    def _next_event(self) -> bool:
        """Handle the next event: start a batch, and complete those that the consumer waits for; return False if the thread must end.

        If no event comes for a while, complete all started batches.
        """
        try:
            with self._executor.span("consumer", Kind.NO_DEMAND):
                event = self._events.get(timeout=_IDLE_SECONDS if self._started else None)
        except queue.Empty:
            self._complete_started()
            return True
        if event is _Event.SCHEDULED:
            self._start()
        elif event is _Event.WANTED:
            self._wanted += 1
        while self._started and self._completed < self._wanted:
            self._complete_oldest()
        return event is not _Event.ENDED

    def _start(self) -> None:
        """Start the next batch."""
        executor = self._executor
        if self._started and not executor.has_data():
            # The program may feed the next data only after it has the batch in flight.
            self._complete_started()
        try:
            executor.wait_for_data(lambda: self._finishing)
            with executor.surroundings():
                self._started.append(executor.begin(tolerant=executor.tolerates))
        except BaseException as error:
            self._started.append(error)
        if not executor.plan.early:
            self._complete_started()

    def _complete_started(self) -> None:
        while self._started:
            self._complete_oldest()

    def _complete_oldest(self) -> None:
        self._completed += 1
        try:
            self._results.put(self._executor.result_of(self._started.popleft()))
        except BaseException as error:
            self._results.put(error)

    def _drop(self) -> None:
        """Drop batches whose results nobody will take; keep errors, but without their frames, which refer to this queue."""
        self._executor.drop(self._started)
        errors = []
        with contextlib.suppress(queue.Empty):
            # Not `while not empty()`: another thread may take the last result.
            while True:
                result = self._results.get_nowait()
                if isinstance(result, BaseException):
                    errors.append(without_frames(result))
        for error in errors:
            self._results.put(error)


def _closed_while_waiting() -> RuntimeError:
    return RuntimeError("The pipeline was closed while a batch of it was waited for.")
