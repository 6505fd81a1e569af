"""Lists of calls for a stream: compiled code makes them while Python is busy."""

from __future__ import annotations

import numpy as np

from penstock.core.gpu_launches import GPU_STREAM
from penstock.core.threads import CALL_WORDS
from penstock.kernels.cuda.sources import THREADS
from penstock.tensors.driver import context_of, driver
from penstock.tensors.streams import Event, Stream

# Calls for which a new list has room: most lists have fewer.
_INITIAL_CALLS = 32
# The unused words of a call with this many arguments.
_AFTER_ONE, _AFTER_TWO, _AFTER_FOUR = ((0,) * (CALL_WORDS - 1 - count) for count in (1, 2, 4))


class LaunchList:
    """Copies, launches and events, in the order of a stream. GPU memory comes from CuPy's pool for this stream.

    Args:
        stream: the current device's stream.

    Attributes:
        kept: objects to keep alive until all calls are queued, among them GPU memory.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._driver = stream, driver()
        self._calls, self._count = np.zeros((_INITIAL_CALLS, CALL_WORDS), np.int64), 0
        # Calls that are not in the array yet.
        self._rows = [(self._driver.set_context, context_of(stream.device_id), *_AFTER_ONE)]
        self.kept: list[object] = []

    def copy_to_device(self, target: int, source: int, size: int) -> None:
        """Copy bytes from pinned memory."""
        self._rows.append((self._driver.copy_to_device, target, source, size, self._stream.ptr, *_AFTER_FOUR))

    def copy_beforehand(self, target: int, source: int, size: int, stream: Stream, event: Event) -> None:
        """Copy bytes from pinned memory in the order of another stream, for which this one then waits.

        Args:
            event: marks the end of the copy; it may be one of earlier copies in the order of that stream.
        """
        self._rows.append((self._driver.copy_to_device, target, source, size, stream.ptr, *_AFTER_FOUR))
        self.follow(stream, event)

    def follow(self, stream: Stream, event: Event) -> None:
        """Make this stream wait for the work queued so far on another; ``event``: as for :meth:`copy_beforehand`."""
        self._rows += (
            (self._driver.record, event.ptr, stream.ptr, *_AFTER_TWO),
            (self._driver.wait, self._stream.ptr, event.ptr, *_AFTER_TWO),
        )

    def copy_to_host(self, target: int, source: int, size: int) -> None:
        """Copy bytes to pinned memory."""
        self._rows.append((self._driver.copy_to_host, target, source, size, self._stream.ptr, *_AFTER_FOUR))

    def record(self, event: Event, stream: Stream | None = None) -> None:
        """Record an event, in the order of another stream if there is one."""
        self._rows.append((self._driver.record, event.ptr, (stream or self._stream).ptr, *_AFTER_TWO))

    def stream_record(self) -> np.ndarray:
        """Return the values common to all launches: one :data:`~penstock.core.gpu_launches.GPU_STREAM`."""
        return np.array([(self._driver.launch, THREADS, self._stream.ptr)], GPU_STREAM)

    def room(self, count: int) -> np.ndarray:
        """Return zeros for the next calls, for compiled code to fill in; then call :meth:`added` with the number filled in."""
        begin = self._count + len(self._rows)
        end = begin + count
        if end > len(self._calls):
            larger = np.zeros((2 * end, CALL_WORDS), np.int64)
            larger[: self._count] = self._calls[: self._count]
            self._calls = larger
        if self._rows:
            self._calls[self._count : begin] = self._rows
            self._rows.clear()
            self._count = begin
        return self._calls[begin:end]

    def added(self, count: int) -> None:
        """Record that this many calls were filled in."""
        self._count += count

    def calls(self) -> np.ndarray:
        """Return the calls, as :class:`~penstock.core.threads.SharedWork` makes them; they need the objects in :attr:`kept`."""
        self.room(0)
        return self._calls[: self._count]
