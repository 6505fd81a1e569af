"""Lists of driver calls for a stream; compiled code makes the calls while Python does other work."""

from __future__ import annotations

import numpy as np

from penstock.core.gpu_launches import GPU_STREAM
from penstock.core.threads import CALL_WORDS
from penstock.kernels.cuda.sources import THREADS
from penstock.tensors.driver import context_of, driver
from penstock.tensors.streams import Event, Stream

# The number of calls that a new list has room for; most lists are shorter.
_INITIAL_CALLS = 32
# The unused words of calls with one, two and four arguments.
_AFTER_ONE, _AFTER_TWO, _AFTER_FOUR = ((0,) * (CALL_WORDS - 1 - count) for count in (1, 2, 4))


class LaunchList:
    """A list of copies, launches and events to queue on a stream. GPU memory that they use comes from CuPy's pool for this stream.

    Args:
        stream: a stream of the current device.

    Attributes:
        kept: objects to keep alive until all calls are queued, among them GPU memory.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._driver = stream, driver()
        self._calls, self._count = np.zeros((_INITIAL_CALLS, CALL_WORDS), np.int64), 0
        # Calls that have not been added to the array yet.
        self._rows = [(self._driver.set_context, context_of(stream.device_id), *_AFTER_ONE)]
        self.kept: list[object] = []

    def copy_to_device(self, target: int, source: int, size: int) -> None:
        """Add a copy from pinned memory to the device; ``size`` is in bytes."""
        self._rows.append((self._driver.copy_to_device, target, source, size, self._stream.ptr, *_AFTER_FOUR))

    def copy_beforehand(self, target: int, source: int, size: int, stream: Stream, event: Event) -> None:
        """Add a copy from pinned memory to the device on another stream, and make this stream wait for it; ``size`` is in bytes.

        Args:
            event: marks the end of the copy; an event that marked earlier copies on that stream may be used again.
        """
        self._rows.append((self._driver.copy_to_device, target, source, size, stream.ptr, *_AFTER_FOUR))
        self.follow(stream, event)

    def follow(self, stream: Stream, event: Event) -> None:
        """Make this stream wait for the work queued so far on another stream; ``event``: as for :meth:`copy_beforehand`."""
        self._rows += (
            (self._driver.record, event.ptr, stream.ptr, *_AFTER_TWO),
            (self._driver.wait, self._stream.ptr, event.ptr, *_AFTER_TWO),
        )

    def copy_to_host(self, target: int, source: int, size: int) -> None:
        """Add a copy to pinned memory; ``size`` is in bytes."""
        self._rows.append((self._driver.copy_to_host, target, source, size, self._stream.ptr, *_AFTER_FOUR))

    def record(self, event: Event, stream: Stream | None = None) -> None:
        """Record an event on this stream, or on another one."""
        self._rows.append((self._driver.record, event.ptr, (stream or self._stream).ptr, *_AFTER_TWO))

    def stream_record(self) -> np.ndarray:
        """Return the values common to all launches: one :data:`~penstock.core.gpu_launches.GPU_STREAM`."""
        return np.array([(self._driver.launch, THREADS, self._stream.ptr)], GPU_STREAM)

    def room(self, count: int) -> np.ndarray:
        """Return zeros for the next ``count`` calls, which compiled code fills in; then call :meth:`added` with the number of calls filled
        in.
        """
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
        """Count calls that were filled in as added."""
        self._count += count

    def calls(self) -> np.ndarray:
        """Return the calls in the form that :class:`~penstock.core.threads.SharedWork` expects; the objects in :attr:`kept` must stay
        alive.
        """
        self.room(0)
        return self._calls[: self._count]
