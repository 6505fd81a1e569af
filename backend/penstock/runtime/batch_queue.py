"""The queue of a pipeline's batches; the consumer takes results in the order in which the batches were scheduled."""

from __future__ import annotations

import threading

from penstock.runtime.batches import Result
from penstock.runtime.executor import Executor
from penstock.runtime.inline_queue import InlineQueue
from penstock.runtime.prefetch_queue import PrefetchQueue


class BatchQueue:
    """Runs scheduled batches on the caller's thread (:class:`InlineQueue`) or ahead of it, on a separate one
    (:class:`PrefetchQueue`).

    A plan that runs entirely on the GPU needs no thread, as its work is asynchronous. If the first batches turn out to need
    the host after all, a thread is started, which takes over the batches that the caller has started.

    Args:
        executor: runs the batches.
        depth: the number of batches that are prefetched; 0: each runs when it is scheduled.

    Attributes:
        executor: as above.
    """

    def __init__(self, executor: Executor, depth: int) -> None:
        self.executor = executor
        self._depth = depth
        self._closed = threading.Event()
        is_inline = not depth or executor.plan.is_cheap_on_host
        self._queue: InlineQueue | PrefetchQueue = (InlineQueue if is_inline else PrefetchQueue)(executor, self._closed)

    def schedule(self, completes: bool = False) -> None:
        """Start the next batch. If another thread has closed the queue in the meantime, the batch fails.

        Args:
            completes: whether the caller takes the oldest batch next; a queue without a thread then completes that batch at once.
        """
        queue = self._queue
        if self._depth and isinstance(queue, InlineQueue) and queue.occupies_host:
            queue = self._queue = PrefetchQueue(self.executor, self._closed, queue.hand_over())
        queue.schedule(completes)

    def next_result(self) -> Result:
        """Wait for the oldest scheduled batch and return its result, or raise its error."""
        return self._queue.next_result()

    @property
    def batches_ahead(self) -> int:
        """The number of batches beyond the prefetch depth that are worth scheduling."""
        return self._queue.batches_ahead if self._depth > 1 else 0

    def close(self, timeout: float | None = None) -> None:
        """End the queue, drop the batches that were not taken, and release the executor.

        Args:
            timeout: how many seconds to wait for the batch that a thread is running; when it expires, the thread ends after that batch.
        """
        self._closed.set()
        self._queue.close(timeout)
