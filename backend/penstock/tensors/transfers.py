"""Copies between host memory and a GPU, at the speed of the GPU's bus.

The GPU itself copies pinned memory, while the host goes on. Other memory goes through a pinned staging buffer: threads of the core, which
need no GIL, fill one slot of the buffer while the GPU copies another. Large copies to the GPU are made on a separate stream
(:class:`_Lane`), so that they need not wait for the previous batch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from typing import Any, NamedTuple

import numpy as np

from penstock.core.loading import core
from penstock.core.once import Once
from penstock.core.threads import CALL_WORDS, BackgroundThreads, Job, make_calls
from penstock.tensors.cuda import require_cupy
from penstock.tensors.driver import context_of, driver, driver_error
from penstock.tensors.memory import size_class
from penstock.tensors.pinned import PinnedMemoryError, PinnedPool, copies_in_flight, is_pinned, pinned_block
from penstock.tensors.streams import Event, Stream, take_stream

SMALL_BYTES = 1 << 16
"""The largest copy, in bytes, that the driver buffers, so that the host need not wait for it."""
_MIN_LANE_BYTES = 1 << 20
"""The smallest copy, in bytes, that is worth a separate stream."""
_MIN_BACKGROUND_BYTES = 4 << 20
"""The smallest copy for which it is worth waking a thread, so that the caller can do other work meanwhile; in bytes."""
_SLOTS, _SLOT_BYTES, _PAGE_BYTES = 16, 2 << 20, 1 << 12
_MIN_PIECE_BYTES = 1 << 18
"""The smallest piece of a copy through a staging buffer, in bytes: for smaller ones, waking another thread takes longer than it saves.
"""
_DIRECT_PIECE_BYTES = 8 << 20
"""The size of the pieces of direct copies, in bytes: other copies, such as those of kernel arguments, can be made between pieces.
"""
_MIN_DIRECT_BLOCK_BYTES = 1 << 18
"""The smallest average size of blocks that are copied directly, in bytes: smaller blocks are gathered in a staging buffer."""
_MAX_THREADS = 8
"""The largest number of threads that fill staging buffers: with more, the bus is the limit."""
_MAX_LANES = 4
_FREE_RESULT_BYTES, _MAX_RESULT_BYTES = 256 << 20, 1 << 30
"""Pinned memory for results, in bytes: the size retained for later results, and the limit, as programs may hold on to results."""

_TRANSFER = np.dtype(
    [
        (name, np.int64)
        for name in (
            "block_count",
            "addresses",
            "ends",
            "device_address",
            "to_host",
            "piece_bytes",
            "staging",
            "slot_count",
            "slot_bytes",
            "first_slot",
            "events",
            "context",
            "stream",
            "set_context",
            "copy_to_device",
            "copy_to_host",
            "record",
            "synchronize",
        )
    ]
)
"""``PenstockTransfer`` in `core.h`."""
_JOB = np.dtype([("transfer", _TRANSFER), *((name, np.int64) for name in ("threads", "cores", "core_count", "status"))])
"""``PenstockTransferJob`` in `core.h`."""


class HostBlocks(NamedTuple):
    """Blocks of host memory.

    Attributes:
        addresses: the blocks' addresses, int64.
        sizes: the sizes in bytes, int64.
        owner: the object that keeps the memory alive.
    """

    addresses: np.ndarray
    sizes: np.ndarray
    owner: object

    @classmethod
    def of_arrays(cls, arrays: list[np.ndarray]) -> HostBlocks:
        """Return the memory blocks of contiguous arrays."""
        addresses = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        return cls(addresses, np.array([array.nbytes for array in arrays], np.int64), arrays)


class Threads(NamedTuple):
    """The threads that fill staging memory, including the calling one.

    Attributes:
        number: the number of threads.
        cores: the cores to which the threads are bound; None: they are not bound.
    """

    number: int
    cores: tuple[int, ...] | None = None

    def bound(self) -> np.ndarray:
        """Return the cores as int64; empty if threads are not bound."""
        return np.array(self.cores or (), np.int64)


@Once
def _all_cores() -> Threads:
    """Return one thread for each available core, the default."""
    return Threads(len(os.sched_getaffinity(0)))


class _Lane:
    """A stream for copying batches to the GPU. The memory of the batches is allocated and released in the order of this stream.

    Memory may be released while work on another stream still uses it; later copies in the lane then wait for that work.
    The next batch is therefore copied in another lane, which need not wait.
    """

    def __init__(self, device_id: int) -> None:
        self.stream = take_stream(device_id)
        self._device = require_cupy().cuda.Device(device_id)
        self._freed: Event | None = None

    def is_free(self) -> bool:
        """Return whether new copies need not wait for users of earlier ones."""
        return self._freed is None or self._freed.done

    def follow(self, user: Stream) -> None:
        """Make later copies wait for the work queued so far on a stream: that work still uses memory that is now freed."""
        with self._device:
            # A new event, as another thread, or garbage collection, may do the same at this moment.
            freed = user.record(require_cupy().cuda.Event(disable_timing=True))
            self.stream.wait_event(freed)
        self._freed = freed


class _LaneMemory:
    """Memory of a lane; released when nothing refers to this object any more.

    Args:
        memory: CuPy's memory, allocated on the lane's stream.
        lane: the lane.
        user: the stream that uses the memory.
    """

    __slots__ = ("_lane", "_user", "memory")

    def __init__(self, memory: Any, lane: _Lane, user: Stream) -> None:
        self.memory, self._lane, self._user = memory, lane, user

    def __del__(self) -> None:
        if not sys.is_finalizing():
            # On a lost device, there is no later work to order.
            with contextlib.suppress(require_cupy().cuda.runtime.CUDARuntimeError):
                self._lane.follow(self._user)


class _Staging:
    """Pinned host memory, in slots, through which other host memory is copied to and from a device.

    Attributes:
        block: the memory of all slots.
        events: the event of each slot, which is recorded after the last copy of that slot.
    """

    def __init__(self) -> None:
        self.block = pinned_block(_SLOTS * _SLOT_BYTES)
        self.events = [require_cupy().cuda.Event(disable_timing=True) for _ in range(_SLOTS)]
        self.event_addresses = np.array([event.ptr for event in self.events], np.int64)
        self._next = 0

    def take(self, pieces: int) -> int:
        """Reserve a slot for each of ``pieces`` pieces; return the first of these slots."""
        first, self._next = self._next, (self._next + pieces) % _SLOTS
        return first


class _Transfer(NamedTuple):
    """A transfer that is ready to be made.

    Attributes:
        record: the transfer's ``PenstockTransferJob``.
        cores: the cores to which threads are bound.
        keep: the objects that the record points to, which must stay alive.
    """

    record: np.ndarray
    cores: np.ndarray
    keep: object


class Arrival:
    """A copy to a GPU that threads make while the caller does other work.

    Args:
        job: the threads' work.
        record: the job's ``PenstockTransferJob``.
        lane: the lane that copies the data.
        user: the stream that uses the copy.
        memory: CuPy's pointer to the copy.
    """

    def __init__(self, job: Job, record: np.ndarray, lane: _Lane, user: Stream, memory: Any) -> None:
        self._job, self._record, self._lane, self._user, self._memory = job, record, lane, user, memory

    def __del__(self) -> None:
        # Otherwise, threads might go on copying to memory that is already in use again.
        if not sys.is_finalizing():
            self._job.wait()

    def wait(self) -> None:
        """Wait until the source has been read, and make later work on the stream that uses the copy wait for the copy."""
        self._job.wait()
        status = int(self._record["status"])
        if status:
            raise driver_error(status)
        self._user.wait_event(self._lane.stream.record(require_cupy().cuda.Event(disable_timing=True)))


class DeviceTransfers:
    """The copies between the host and one GPU.

    Args:
        device_id: the number of the GPU.
    """

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._staging_lock, self._lanes_lock = threading.Lock(), threading.Lock()
        self._staging: _Staging | None = None
        # The last transfer that was begun in the background.
        self._job: Job | None = None
        self._lanes: list[_Lane] = []
        self._next_lane = 0

    def upload(self, blocks: HostBlocks, threads: Threads | None = None) -> Any:
        """Copy blocks to new memory on the current GPU, one after the other.

        When this returns, blocks have been read, except page-locked ones, which must not change until the copy is done.

        Args:
            blocks: the blocks.
            threads: the threads that fill staging memory; None: as many as there are cores.

        Returns:
            CuPy's pointer to the memory; work queued on the current stream sees the data.
        """
        cuda = require_cupy().cuda
        user, size = cuda.get_current_stream(), int(blocks.sizes.sum())
        if size < _MIN_LANE_BYTES:
            memory = cuda.alloc(size)
            if size:
                self._copy(blocks, memory.ptr, size, user, threads)
            return memory
        lane = self._lane()
        address, memory = self._allocated(size, lane, user)
        copied = self._copy(blocks, address, size, lane.stream, threads)
        user.wait_event(copied or lane.stream.record(cuda.Event(disable_timing=True)))
        return memory

    def begin_upload(self, blocks: HostBlocks, threads: Threads | None = None) -> tuple[Any, Arrival | None]:
        """Copy blocks like :meth:`upload`, but let threads fill staging memory while the caller does other work.

        Returns:
            CuPy's pointer to the memory, and the copy under way; None if the copy was made as by :meth:`upload`. Call
            :meth:`Arrival.wait` before queuing work on the memory; until then, the blocks must not change.
        """
        size = int(blocks.sizes.sum())
        staged = size >= _MIN_BACKGROUND_BYTES and not self._is_direct(blocks, size)
        background = self._background if staged else None
        if background is None:
            return self.upload(blocks, threads), None
        user, lane = require_cupy().cuda.get_current_stream(), self._lane()
        address, memory = self._allocated(size, lane, user)
        with self._staging_lock:
            transfer = self._transfer(blocks, address, lane.stream, threads or _all_cores(), to_host=False)
            if transfer is not None:
                job = Job(_background_transfer(), transfer.record.ctypes.data, (transfer, blocks), 1)
                background.submit(job)
                self._job = job
                return memory, Arrival(job, transfer.record, lane, user, memory)
        # The driver has read ordinary memory when the call returns.
        self._copy_directly(blocks, address, lane.stream)
        user.wait_event(lane.stream.record(require_cupy().cuda.Event(disable_timing=True)))
        return memory, None

    @functools.cached_property
    def _background(self) -> BackgroundThreads | None:
        """The thread that makes copies in the background, one after the other; None if the system grants no thread."""
        try:
            return BackgroundThreads("penstock-upload")
        except MemoryError:
            return None

    def _allocated(self, size: int, lane: _Lane, user: Stream) -> tuple[int, Any]:
        """Allocate memory of a lane for a user; return its address, and CuPy's pointer to it."""
        cuda = require_cupy().cuda
        with lane.stream:
            memory = cuda.alloc(size_class(size))
        owner = _LaneMemory(memory, lane, user)
        return memory.ptr, cuda.MemoryPointer(cuda.UnownedMemory(memory.ptr, size, owner, self._device_id), 0)

    def _lane(self) -> _Lane:
        """Return a lane whose copies need not wait, if there is one; the first lanes are preferred, so that few lanes hold memory."""
        with self._lanes_lock:
            for lane in self._lanes:
                if lane.is_free():
                    return lane
            if len(self._lanes) < _MAX_LANES:
                self._lanes.append(_Lane(self._device_id))
                return self._lanes[-1]
            self._next_lane = (self._next_lane + 1) % _MAX_LANES
            return self._lanes[self._next_lane]

    def _copy(
        self, blocks: HostBlocks, target: int, size: int, stream: Stream, threads: Threads | None
    ) -> Event | None:
        """Copy blocks to the GPU; return the event recorded after copies that may still read the blocks, or None if there are none."""
        if self._is_direct(blocks, size):
            self._copy_directly(blocks, target, stream)
            copied = stream.record(require_cupy().cuda.Event(disable_timing=True))
            copies_in_flight.add(copied, blocks.owner)
            return copied
        if size <= SMALL_BYTES and _are_large(blocks, size):
            self._copy_directly(blocks, target, stream)
            return None
        if not self._stage(blocks, target, stream, threads, to_host=False):
            # The driver has read ordinary memory when the call returns.
            self._copy_directly(blocks, target, stream)
        return None

    @staticmethod
    def _is_direct(blocks: HostBlocks, size: int) -> bool:
        """Return whether the GPU can copy the blocks directly: they must be page-locked, and large enough for separate copies."""
        return _are_large(blocks, size) and all(map(is_pinned, blocks.addresses[blocks.sizes > 0].tolist()))

    def _copy_directly(self, blocks: HostBlocks, target: int, stream: Stream) -> None:
        """Copy blocks with calls of the driver, in pieces."""
        functions, calls = driver(), [(driver().set_context, context_of(self._device_id), 0, 0, 0)]
        for source, size in zip(blocks.addresses.tolist(), blocks.sizes.tolist()):
            for begin in range(0, size, _DIRECT_PIECE_BYTES):
                part = min(_DIRECT_PIECE_BYTES, size - begin)
                calls.append((functions.copy_to_device, target + begin, source + begin, part, stream.ptr))
            target += size
        table = np.zeros((len(calls), CALL_WORDS), np.int64)
        table[:, : len(calls[0])] = calls
        status = make_calls(table.ctypes.data, len(table))
        if status:
            raise driver_error(status)

    def _stage(self, blocks: HostBlocks, address: int, stream: Stream, threads: Threads | None, to_host: bool) -> bool:
        """Copy blocks through staging memory; return False, without copying, if there is no staging memory."""
        with self._staging_lock:
            transfer = self._transfer(blocks, address, stream, threads or _all_cores(), to_host)
            if transfer is None:
                return False
            record, cores = transfer.record, transfer.cores
            threads_used = int(record["threads"])
            status = core().penstock_transfer(record.ctypes.data, threads_used, cores.ctypes.data, len(cores))
        if status:
            raise driver_error(status)
        return True

    def _transfer(
        self, blocks: HostBlocks, address: int, stream: Stream, threads: Threads, to_host: bool
    ) -> _Transfer | None:
        """Prepare a transfer through staging memory, once no other transfer uses that memory; return None if there is no staging memory.

        The caller must hold the lock for staging memory.
        """
        functions, ends, cores = driver(), blocks.sizes.cumsum(), threads.bound()
        num_threads = max(min(threads.number, _MAX_THREADS), 1)
        piece = _piece_bytes(int(ends[-1]), num_threads)
        if self._job is not None:
            self._job.wait()
            self._job = None
        try:
            staging = self._staging = self._staging or _Staging()
        except PinnedMemoryError:
            return None
        transfer = (
            len(ends),
            blocks.addresses.ctypes.data,
            ends.ctypes.data,
            address,
            to_host,
            piece,
            staging.block.ctypes.data,
            _SLOTS,
            _SLOT_BYTES,
            staging.take(-(-int(ends[-1]) // piece)),
            staging.event_addresses.ctypes.data,
            context_of(self._device_id),
            stream.ptr,
            functions.set_context,
            functions.copy_to_device,
            functions.copy_to_host,
            functions.record,
            functions.synchronize,
        )
        record = np.array((transfer, num_threads, cores.ctypes.data, len(cores), 0), _JOB)
        return _Transfer(record, cores, (blocks, ends, staging))

    def download(self, array: Any, threads: Threads | None = None) -> np.ndarray:
        """Copy a CuPy array to host memory, which is pinned if the array is large and pinned memory is available; wait for
        the copy.
        """
        cuda = require_cupy().cuda
        source = require_cupy().ascontiguousarray(array)
        host = _results().take(source.nbytes)
        stream, address = cuda.get_current_stream(), host.ctypes.data
        block = HostBlocks(np.array([address]), np.array([host.nbytes]), host)
        if not is_pinned(address) and self._stage(block, source.data.ptr, stream, threads, to_host=True):
            return _in_source_shape(host, source)
        runtime = cuda.runtime
        runtime.memcpyAsync(address, source.data.ptr, source.nbytes, runtime.memcpyDefault, stream.ptr)
        stream.synchronize()
        return _in_source_shape(host, source)

    def release(self) -> None:
        """Release the staging memory, once copies from it are done; do nothing if a thread is using it.

        That thread may be the calling one, if garbage collection closes a pipeline meanwhile.
        """
        if not self._staging_lock.acquire(blocking=False):
            return
        try:
            if self._job is not None:
                self._job.wait()
            staging, self._staging = self._staging, None
        finally:
            self._staging_lock.release()
        # A lost device makes no copies any more.
        with contextlib.suppress(require_cupy().cuda.runtime.CUDARuntimeError):
            for event in () if staging is None else staging.events:
                event.synchronize()


def _are_large(blocks: HostBlocks, size: int) -> bool:
    """Return whether blocks are large enough for separate copies; a single block always is."""
    return bool(size >= _MIN_DIRECT_BLOCK_BYTES * len(blocks.sizes) or len(blocks.sizes) == 1)


@Once
def _background_transfer() -> int:
    """Return the address of the compiled function that makes a transfer in the background."""
    return int(ctypes.cast(core().penstock_transfer_in_background, ctypes.c_void_p).value or 0)


def _piece_bytes(size: int, num_threads: int) -> int:
    """Return the size of pieces of a copy through a staging buffer: as large as possible, but the same number for each thread."""
    rounds = max(-(-size // (num_threads * _SLOT_BYTES)), 1)
    pages = -(-size // (rounds * num_threads * _PAGE_BYTES))
    return min(max(pages * _PAGE_BYTES, _MIN_PIECE_BYTES), _SLOT_BYTES)


def _in_source_shape(host: np.ndarray, source: Any) -> np.ndarray:
    """Return bytes as an array of the type and shape of ``source``."""
    array: np.ndarray = host.view(source.dtype).reshape(source.shape)
    return array


@Once
def _results() -> PinnedPool:
    """Return the pinned pool for results that are copied from GPUs."""
    return PinnedPool(limit=_FREE_RESULT_BYTES, max_bytes=_MAX_RESULT_BYTES)


@Once
def _of_device(device_id: int) -> DeviceTransfers:
    return DeviceTransfers(device_id)


def transfers() -> DeviceTransfers:
    """Return the transfers between the host and the current device."""
    return _of_device(int(require_cupy().cuda.Device().id))


def array_to_host(array: Any) -> np.ndarray:
    """Copy a CuPy array to the host, in the order of the current stream of the array's device."""
    with array.device:
        return array.get() if array.nbytes <= SMALL_BYTES else transfers().download(array)


def release_unused(device_id: int) -> None:
    """Release pinned memory that is retained for later transfers between the host and a device."""
    _of_device(device_id).release()
    _results().release()
