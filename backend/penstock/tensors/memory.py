"""Host memory that is reused from run to run.

A new large numpy array costs a page fault for every 4 KiB written, which takes longer than many operators' arithmetic.
:class:`HostPool` owns blocks, and lends each as a new array, to which every view (also through DLPack or torch) holds a reference. A block
is free as soon as that array is gone, so a result that a user holds is never overwritten. Weak references detect when the array is gone, as
reference counts are inexact in free-threaded Python.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
import weakref
from operator import attrgetter

import numpy as np

_MIN_POOLED_BYTES = 64 * 1024
_ALIGNMENT_BYTES = 64
_MIN_STEP_BYTES = 256


def _aligned_block(size: int) -> np.ndarray:
    raw = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
    # With ctypes, as NumPy's `raw.ctypes` takes as long as all the other steps together.
    start = -ctypes.addressof(ctypes.c_char.from_buffer(raw.data)) % _ALIGNMENT_BYTES
    return raw[start : start + size]


def size_class(size: int) -> int:
    """Round a size up to three significant bits, so that pools reuse memory of earlier batches of slightly different sizes."""
    step = max(1 << max(size.bit_length() - 4, 0), _MIN_STEP_BYTES)
    return -(-size // step) * step


class BatchMemory:
    """Memory for the samples of a batch whose sizes become known one by one: samples are parts of one block from a pool."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._block = np.empty(0, np.uint8)
        # Bytes requested since the batch began, including alignment.
        self._asked = 0

    def begin(self, pool: HostPool | None) -> None:
        """Start a batch; the block is slightly larger than what the previous batch needed."""
        wanted, self._asked = self._asked + self._asked // 8, 0
        self._block = np.empty(0, np.uint8) if pool is None else pool.take(wanted)

    def end(self) -> None:
        """Release the block, which only the batch's samples then keep alive."""
        self._block = np.empty(0, np.uint8)

    def take(self, size: int) -> np.ndarray:
        """Return a 1-D uint8 array of ``size`` bytes, uninitialized, and aligned to 64 bytes if it is part of the block."""
        with self._lock:
            start = self._asked
            self._asked += -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        part = self._block[start : start + size]
        return part if part.size == size else np.empty(size, np.uint8)


class LentMemory:
    """Memory that is lent to one user at a time.

    Args:
        memory: a 1-D array of uint8.
    """

    def __init__(self, memory: np.ndarray) -> None:
        self.size = memory.size
        self._memory = memory.data
        self._borrower: weakref.ref[np.ndarray] | None = None

    def is_free(self) -> bool:
        """Return whether nothing refers any more to the array that was lent last."""
        return self._borrower is None or self._borrower() is None

    def lend(self, size: int) -> np.ndarray:
        """Return the first ``size`` bytes as a new array, made from a buffer, so that NumPy makes this array the base of all its views."""
        lent = np.frombuffer(self._memory, np.uint8, size)
        self._borrower = weakref.ref(lent)
        return lent


_size = attrgetter("size")


class HostPool:
    """Blocks of host memory for the buffers of one pipeline.

    Args:
        limit: the largest total size of blocks, free or in use, in bytes; before a new block would exceed it, all free blocks are returned
            to the system.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._blocks: list[LentMemory] = []  # sorted by size

    def take(self, size: int) -> np.ndarray:
        """Return an uninitialized 1-D uint8 array of ``size`` bytes, aligned to 64 bytes."""
        if size < _MIN_POOLED_BYTES:
            return _aligned_block(size)
        with self._lock:
            for block in self._blocks:
                if block.size >= size and block.is_free():
                    return block.lend(size)
            free = self._free()
            if free:
                # All free blocks are too small. The largest is replaced, so that there are never more blocks than were in use at the
                # same time.
                del self._blocks[free[-1]]
            rounded = size_class(size)
            if self.reserved + rounded > self._limit:
                self._drop_free()
            block = LentMemory(self._new_block(rounded))
            bisect.insort(self._blocks, block, key=_size)
            return block.lend(size)

    def _new_block(self, size: int) -> np.ndarray:
        """Allocate ``size`` bytes, uint8."""
        return _aligned_block(size)

    def _free(self) -> list[int]:
        """Return the indices of the blocks that nothing refers to, smallest first."""
        return [index for index, block in enumerate(self._blocks) if block.is_free()]

    def _drop_free(self) -> None:
        for index in reversed(self._free()):
            del self._blocks[index]

    def release(self) -> None:
        """Release all unused memory to the system; do nothing if a thread is allocating.

        That thread may be the calling one, if garbage collection closes a pipeline while it allocates.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._drop_free()
            finally:
                self._lock.release()

    @property
    def reserved(self) -> int:
        """The total size of the pool's blocks, free or in use, in bytes."""
        return sum(block.size for block in self._blocks)
