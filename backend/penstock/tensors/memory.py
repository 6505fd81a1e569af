"""Host memory that is reused from run to run.

A fresh large numpy array costs a page fault for every 4 KiB that is written to it, which is more than many an operator's
arithmetic. :class:`HostPool` keeps blocks and hands one out again as soon as nothing refers to it: every view of a numpy
array (also through DLPack or torch) holds a reference to the array that owns the memory, so a block whose only
reference is the pool's own is free. A result that a user keeps is therefore never overwritten.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

_POOLED_FROM = 64 * 1024
_ALIGNMENT = 64


def _aligned_block(size: int) -> np.ndarray:
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size]


def _size_class(size: int) -> int:
    """The next size of the form 2^k, 1.25, 1.5 or 1.75 times 2^k: at most a quarter of a block is wasted."""
    step = 1 << max(size.bit_length() - 3, 0)
    return -(-size // step) * step


class HostPool:
    """Blocks of host memory for the buffers of one pipeline.

    Args:
        limit: bytes that the pool keeps at most while they are free; what is beyond goes back to the system.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._blocks: dict[int, list[np.ndarray]] = {}
        self._owned = 0

    def take(self, size: int) -> np.ndarray:
        """A 1-D uint8 array of ``size`` bytes, aligned to 64 bytes, contents undefined."""
        if size < _POOLED_FROM:
            return _aligned_block(size)
        size_class = _size_class(size)
        with self._lock:
            blocks = self._blocks.setdefault(size_class, [])
            for block in blocks:
                # Three references when idle: the list, the loop variable and getrefcount's argument.
                if sys.getrefcount(block.base) == 2 and sys.getrefcount(block) == 3:
                    return block[:size]
            if self._owned + size_class > self._limit:
                self._drop_free()
            block = _aligned_block(size_class)
            blocks = self._blocks.setdefault(size_class, [])
            blocks.append(block)
            self._owned += size_class
            return block[:size]

    def _drop_free(self) -> None:
        for size_class, blocks in list(self._blocks.items()):
            kept = []
            while blocks:
                block = blocks.pop()
                if sys.getrefcount(block.base) > 2:
                    kept.append(block)
                else:
                    self._owned -= size_class
            self._blocks[size_class] = kept

    def release(self) -> None:
        """Gives all memory that is not in use back to the system."""
        with self._lock:
            self._drop_free()

    @property
    def reserved(self) -> int:
        """Bytes that the pool holds, in use or free."""
        return self._owned
