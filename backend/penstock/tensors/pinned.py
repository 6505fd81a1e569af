"""Pinned host memory, which a GPU reads and writes by itself, at the full speed of its bus.

Locking pages takes many times as long as copying them, so memory is reused. Other programs cannot use it meanwhile, so it is counted
(:func:`pinned_bytes`), limited, and released when it is no longer needed. If the system refuses to lock pages, ordinary memory is used.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import threading
import warnings
from typing import Any

import numpy as np

from penstock.tensors.cuda import device_lost, require_cupy
from penstock.tensors.memory import HostPool
from penstock.tensors.streams import Event

_MAX_PINNED_BYTES, _MAX_SHARE = 8 << 30, 0.25
# CUDA's flag for memory that all GPUs can access, and CUDA's type number of pointers to pinned memory.
_PORTABLE_FLAG, _HOST_MEMORY = 1, 1

_lock = threading.RLock()
_total = 0
_refused = False
# The number of forks before this process: memory that its parent has locked cannot be used here.
_forks = 0


def _note_fork() -> None:
    global _forks, _lock, _total
    # Another thread of the parent may have held the lock during the fork.
    _forks, _lock, _total = _forks + 1, threading.RLock(), 0
    copies_in_flight.forget_all()


@functools.cache
def max_pinned_bytes() -> int:
    """Return how many bytes of host memory Penstock page-locks in one process at most: 8 GiB, or a quarter of the machine's memory."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_MAX_PINNED_BYTES, int(_MAX_SHARE * machine))


def pinned_bytes() -> int:
    """Return the bytes of host memory that Penstock has page-locked in this process."""
    return _total


class _PinnedMemory:
    """Page-locked memory, which every GPU can access.

    Args:
        size: the size in bytes.

    Raises:
        cupy.cuda.runtime.CUDARuntimeError: the system refuses to lock the memory.
    """

    def __init__(self, size: int) -> None:
        self._size, self._forks = size, _forks
        self._runtime: Any = require_cupy("page-locked memory").cuda.runtime
        self._address: int = self._runtime.hostAlloc(size, _PORTABLE_FLAG)
        _count(size)
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (self._address, False), "version": 3}

    def __del__(self) -> None:
        # At exit and in a forked process, the system frees the memory.
        if hasattr(self, "_address") and self._forks == _forks and not sys.is_finalizing():
            _count(-self._size)
            # A lost device has no memory to free.
            with contextlib.suppress(self._runtime.CUDARuntimeError):
                self._runtime.freeHost(self._address)


def _count(size: int) -> None:
    global _total
    with _lock:
        _total += size


class PinnedMemoryError(MemoryError):
    """No more memory can be page-locked, because of the limit or because the system refuses."""


def pinned_block(size: int) -> np.ndarray:
    """Allocate uninitialized page-locked memory, uint8 of shape (size,), which is released when nothing refers to it any more.

    Raises:
        PinnedMemoryError: the memory would exceed :func:`max_pinned_bytes`, or the system refuses it, which also gives a warning.
    """
    global _refused
    if _total + size > max_pinned_bytes():
        raise PinnedMemoryError(
            f"{size} bytes cannot be page-locked in addition to {_total}: the limit is {max_pinned_bytes()}"
        )
    try:
        return np.asarray(_PinnedMemory(size))
    except require_cupy().cuda.runtime.CUDARuntimeError as error:
        if device_lost(error) is not None:
            raise
        if not _refused:
            _refused = True
            warnings.warn(
                f"The system refuses {size} bytes of page-locked memory, beside {_total} that are in use ({error}). Copies to and from the "
                "GPU go through ordinary memory, and take several times as long. Raise the limit for locked memory (`ulimit -l`, "
                "or the container's memory), or use smaller batches.",
                RuntimeWarning,
                stacklevel=2,
            )
        raise PinnedMemoryError(str(error)) from error


def is_pinned(address: int) -> bool:
    """Return whether the host memory at an address is page-locked, by this package or another."""
    attributes = require_cupy().cuda.runtime.pointerGetAttributes(address)
    return bool(attributes.type == _HOST_MEMORY)


class PinnedPool(HostPool):
    """A pool of pinned memory for copies to and from a GPU; of ordinary memory if no more can be pinned.

    A block is free when nothing refers to it, including copies in flight.

    Args:
        device_id: the number of the GPU; None: the GPU that is current when memory is taken.
        limit: the largest total size of blocks, free or in use, in bytes; before a new block would exceed it, all free blocks are returned
            to the system.
        max_bytes: the largest number of bytes to lock, free or in use; None: no limit.
    """

    def __init__(self, device_id: int | None = None, limit: int = 1 << 30, max_bytes: int | None = None) -> None:
        super().__init__(limit)
        self._device_id = device_id
        self._max_bytes = math.inf if max_bytes is None else max_bytes
        self._ordinary = HostPool(limit)
        self._forks = _forks

    def take(self, size: int) -> np.ndarray:
        """Return an uninitialized 1-D uint8 array of ``size`` bytes; page-locked if it is large, and if that is possible."""
        if self._forks != _forks:
            return np.empty(size, np.uint8)
        copies_in_flight.forget_done()
        try:
            return super().take(size)
        except PinnedMemoryError:
            return self._ordinary.take(size)

    def _new_block(self, size: int) -> np.ndarray:
        if super().reserved + size > self._max_bytes:
            raise PinnedMemoryError(f"{super().reserved} bytes are page-locked, and {size} more would exceed the limit")
        if self._device_id is None:
            return pinned_block(size)[:]
        with require_cupy().cuda.Device(self._device_id):
            return pinned_block(size)[:]

    def release(self) -> None:
        if self._forks == _forks:
            copies_in_flight.forget_done()
            super().release()
            self._ordinary.release()

    @property
    def reserved(self) -> int:
        """The total size of the pool's blocks, free or in use, page-locked or not, in bytes."""
        return super().reserved + self._ordinary.reserved


class CopiesInFlight:
    """Copies that the GPU makes by itself, and the host memory that they use, which is retained until they are done."""

    def __init__(self) -> None:
        # Garbage collection while a thread holds the lock may end up here, too: hence a reentrant lock.
        self._lock = threading.RLock()
        self._copies: list[tuple[Event, object]] = []

    def add(self, event: Event, memory: object) -> None:
        """Retain memory until an event is done; the event is recorded after a copy, and must be used for that copy only."""
        self.forget_done()
        with self._lock:
            self._copies.append((event, memory))

    def forget_done(self) -> None:
        """Release the memory of copies that are done."""
        if self._copies:
            with self._lock:
                self._copies = [copy for copy in self._copies if not _is_done(copy[0])]

    def wait(self) -> None:
        """Wait for all copies."""
        with self._lock:
            copies = list(self._copies)
        for event, _ in copies:
            if not _is_done(event):
                event.synchronize()
        self.forget_done()

    def forget_all(self) -> None:
        """Forget all copies, without releasing their memory. For a forked process, in which no copy is in flight."""
        self._lock = threading.RLock()
        _of_parent.append(self._copies)
        self._copies = []


def _is_done(event: Event) -> bool:
    try:
        return event.done
    except require_cupy().cuda.runtime.CUDARuntimeError:
        # A lost device makes no copies any more; its next user gets the error.
        return True


_of_parent: list[object] = []
copies_in_flight = CopiesInFlight()
"""The copies of this process."""
os.register_at_fork(after_in_child=_note_fork)
