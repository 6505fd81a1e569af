"""CUDA streams: ``Stream``, and the default streams."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator

from penstock.tensors import cuda
from penstock.tensors.streams import borrowed_streams
from penstock.tensors.tensor import as_cupy_stream


class Stream:
    """A CUDA stream.

    Args:
        stream: an existing stream: one of PyTorch or CuPy, an object with ``__cuda_stream__``, or an address; by default a new stream is
            created.
        device_id: the number of the stream's GPU; by default the thread's current GPU.
    """

    create_new: object = type("CreateNew", (), {"__repr__": lambda self: "Stream.create_new"})()

    def __init__(self, *, stream: object = create_new, device_id: int | None = None) -> None:
        cupy = cuda.require_cupy("a CUDA stream")
        # Keep a reference: if the owner of a user's stream is destroyed, the stream may be destroyed or reused.
        self._given = stream
        with cupy.cuda.Device(device_id):
            self._device_id = int(cupy.cuda.Device().id)
            if stream is Stream.create_new:
                (self.cupy_stream,) = borrowed_streams(self, 1)
            elif isinstance(stream, Stream):
                self.cupy_stream = stream.cupy_stream
            elif hasattr(stream, "__cuda_stream__"):
                self.cupy_stream = cuda.stream_at(stream.__cuda_stream__()[1], self.device_id)
            else:
                self.cupy_stream = as_cupy_stream(stream)

    @property
    def device_id(self) -> int:
        """The number of the stream's GPU."""
        return self._device_id

    @property
    def handle(self) -> int:
        """The stream's address."""
        return int(self.cupy_stream.ptr)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait for all work that has been queued on the stream."""
        self.cupy_stream.synchronize()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Stream):
            return (self.handle, self.device_id) == (other.handle, other.device_id)
        address = getattr(other, "cuda_stream", getattr(other, "ptr", other))
        return address == self.handle if isinstance(address, int) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.handle, self.device_id))

    def __repr__(self) -> str:
        return f"Stream(handle={self.handle:#x}, device_id={self.device_id})"


@contextlib.contextmanager
def in_order(stream: Stream, device_ids: Iterable[int]) -> Iterator[None]:
    """Inside the context, order a stream's work after the work queued so far on CuPy's current streams of some GPUs, and before later work
    on those streams.

    CuPy's functions, copies, and libraries that exchange data with CuPy all use CuPy's current stream. They can therefore use the results,
    and inputs that they made are complete.
    """
    cupy = cuda.require_cupy("a CUDA stream")
    cupy_stream, others = stream.cupy_stream, []
    for number in device_ids:
        with cupy.cuda.Device(number):
            current = cupy.cuda.get_current_stream()
            if number == stream.device_id and current.ptr == cupy_stream.ptr:
                continue
            others.append((number, current))
            before = current.record(cupy.cuda.Event(disable_timing=True))
        with cupy.cuda.Device(stream.device_id):
            cupy_stream.wait_event(before)

    def precede() -> None:
        with cupy.cuda.Device(stream.device_id):
            after = cupy_stream.record(cupy.cuda.Event(disable_timing=True)) if others else None
        for number, current in others:
            with cupy.cuda.Device(number):
                current.wait_event(after)

    try:
        yield
    except BaseException:
        # If the GPU is lost, the error of the work itself says more.
        with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
            precede()
        raise
    precede()


class _Current(threading.local):
    """The streams that a thread has set, by device."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_current = _Current()
_defaults: dict[int, Stream] = {}


def stream(*, stream: object = Stream.create_new, device_id: int | None = None) -> Stream:
    """Return a :class:`Stream` for an existing stream, or a new one."""
    return stream if isinstance(stream, Stream) and device_id is None else Stream(stream=stream, device_id=device_id)


def _set(streams: dict[int, Stream], requested: object, device_id: int | None) -> None:
    if requested is not None:
        new = stream(stream=requested, device_id=device_id)
        streams[new.device_id] = new
    elif device_id is None:
        streams.clear()
    else:
        streams.pop(device_id, None)


def set_default_stream(cuda_stream: object, /, device_id: int | None = None) -> None:
    """Set the default stream of all threads for the stream's device. None: remove the default for ``device_id``, or for all devices."""
    _set(_defaults, cuda_stream, device_id)


def set_current_stream(cuda_stream: object, /) -> None:
    """Set the stream of this thread for the stream's device. None: remove this thread's streams for all devices."""
    _set(_current.streams, cuda_stream, None)


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """Return the stream that was set for all threads, or None."""
    return _find(_defaults, device_id)


def get_current_stream(device_id: int | None = None) -> Stream | None:
    """Return the stream that was set for this thread, or else for all threads; None if there is neither."""
    return _find(_current.streams, device_id) or _find(_defaults, device_id)


def _find(streams: dict[int, Stream], device_id: int | None) -> Stream | None:
    if not streams:
        return None
    if device_id is None:
        device_id = int(cuda.require_cupy("a CUDA stream").cuda.Device().id)
    return streams.get(device_id)
