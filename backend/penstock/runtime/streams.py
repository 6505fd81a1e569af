"""The CUDA stream that a pipeline runs on."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from types import ModuleType, TracebackType

from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import Event, Stream, give_back, take_stream


class PipelineStream:
    """A pipeline's stream on its GPU, acquired on first use.

    Args:
        device_id: the number of the GPU.

    Attributes:
        device_id: the number of the GPU.
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._stream: Stream | None = None
        self._is_given = False
        # Events to be recorded again: creating an event takes longer than recording it.
        self._events: list[Event] = []

    def give(self, stream: Stream) -> None:
        """Run later work on another pipeline's stream."""
        if self._stream is not stream:
            self.release()
            self._stream, self._is_given = stream, True

    def acquired(self) -> Stream:
        """Return the CuPy stream, acquired if necessary; the pipeline's device must be current."""
        if self._stream is None:
            self._stream = take_stream(self.device_id)
        return self._stream

    @functools.cached_property
    def runtime(self) -> ModuleType:
        """CuPy's module for CUDA's runtime."""
        runtime: ModuleType = require_cupy().cuda.runtime
        return runtime

    @property
    def stream(self) -> Stream:
        """The CuPy stream."""
        if self._stream is None:
            with AsCurrent(self):
                return self.acquired()
        return self._stream

    def event(self, block: bool) -> Event:
        """Record an event on the current device, after the work submitted so far; with ``block``, threads sleep while they wait for it."""
        stream = self.acquired()
        if self._events and not block:
            return stream.record(self._events.pop())
        return stream.record(require_cupy().cuda.Event(block=block, disable_timing=True))

    def take_back(self, event: Event) -> None:
        """Take back a non-blocking event that nobody waits for any more, to be recorded again."""
        self._events.append(event)

    def release(self) -> None:
        """Release the stream to other pipelines."""
        if self._stream is not None and not self._is_given:
            give_back(self.device_id, self._stream)
        self._stream, self._is_given = None, False


class AsCurrent(AbstractContextManager[None]):
    """Makes a device and a pipeline's stream on it current while the context lasts."""

    __slots__ = ("_before", "_entered", "_runtime", "_stream")

    def __init__(self, stream: PipelineStream) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        pipeline_stream = self._stream
        # Does the same as `cupy.cuda.Device`, without creating an object for each batch.
        runtime = self._runtime = pipeline_stream.runtime
        self._before = runtime.getDevice()
        if self._before != pipeline_stream.device_id:
            runtime.setDevice(pipeline_stream.device_id)
        try:
            self._entered = pipeline_stream.acquired()
            self._entered.__enter__()
        except BaseException:
            runtime.setDevice(self._before)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._entered.__exit__(kind, error, traceback)
        finally:
            self._runtime.setDevice(self._before)
