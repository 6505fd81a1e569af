"""CUDA streams, which are reused by one user after another."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Protocol

from penstock.tensors.cuda import require_cupy


class Event(Protocol):
    """An event of CuPy."""

    @property
    def ptr(self) -> int:
        """CUDA's handle."""

    @property
    def done(self) -> bool:
        """Whether all work before the event is done."""

    def synchronize(self) -> None:
        """Wait for the event on the host."""


class Stream(Protocol):
    """A stream of CuPy, which is the current one in a `with` statement."""

    @property
    def ptr(self) -> int:
        """CUDA's handle."""

    @property
    def device_id(self) -> int:
        """The number of the stream's GPU."""

    def record(self, event: Event | None = None) -> Event:
        """Record an event after the work queued so far, and return it."""

    def wait_event(self, event: Event) -> None:
        """Make work that is queued later wait for an event."""

    def synchronize(self) -> None:
        """Wait on the host for the work queued so far."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...


# Streams are never destroyed: results outlive the pipeline that made them, and libraries free memory in the order of its
# stream. Storing streams here matters for a pipeline in a reference cycle, whose stream would otherwise be finalized with it.
_streams: list[Stream] = []
_idle: dict[int, list[Stream]] = {}


def take_stream(device_id: int) -> Stream:
    """Return an unused CUDA stream of the current device, ``device_id``."""
    try:
        # Catch the error rather than test first: another thread may take the last stream in between.
        return _idle.get(device_id, []).pop()
    except IndexError:
        stream: Stream = require_cupy().cuda.Stream(non_blocking=True)
        _streams.append(stream)
        return stream


def give_back(device_id: int, *streams: Stream) -> None:
    """Return streams of a device to the pool, for other users."""
    _idle.setdefault(device_id, []).extend(streams)


def borrowed_streams(owner: object, count: int) -> list[Stream]:
    """Return streams of the current device; they return to the pool when ``owner`` is garbage-collected."""
    device = int(require_cupy().cuda.Device().id)
    streams = [take_stream(device) for _ in range(count)]
    weakref.finalize(owner, give_back, device, *streams)
    return streams


def follow(stream: Stream, other: Stream, event: Event) -> None:
    """Make a stream wait for the work queued so far on another one. Streams that wait for an earlier recording of ``event`` still do."""
    stream.wait_event(other.record(event))
