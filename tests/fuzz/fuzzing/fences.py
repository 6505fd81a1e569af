"""Fenced memory, in which out-of-bounds access by a kernel or library crashes the process at once.

numba checks the bounds of arrays (``NUMBA_BOUNDSCHECK=1``), but not accesses through pointers, which the JPEG kernels use in
their inner loops. Here, encoded files, decoded batches and the kernels' buffers begin or end at an inaccessible page.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0
_counter = itertools.count()
_c = ctypes.CDLL(None, use_errno=True)


def fenced(size: int) -> np.ndarray:
    """Return zeros, uint8 of shape (size,), in memory that alternately ends and begins at an inaccessible page."""
    room = -(-max(size, 1) // _PAGE) * _PAGE
    memory = np.frombuffer(mmap.mmap(-1, room + 2 * _PAGE), np.uint8)
    for fence in (0, _PAGE + room):
        if _c.mprotect(ctypes.c_void_p(memory.ctypes.data + fence), ctypes.c_size_t(_PAGE), _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect failed")
    start = _PAGE if next(_counter) % 2 else _PAGE + room - size
    return memory[start : start + size]


def fenced_copy(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array in fenced memory."""
    copy = fenced(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def put_up() -> None:
    """Make the decoders in this process use fenced memory from now on."""
    from penstock.kernels.cpu.jpeg import scan, segments
    from penstock.kernels.thread_buffers import ThreadBuffers
    from penstock.tensors.memory import HostPool

    def buffer(self: ThreadBuffers, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return fenced(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)

    ThreadBuffers.array = buffer  # type: ignore[method-assign]
    HostPool.take = lambda self, size: fenced(size)  # type: ignore[method-assign]
    scan.memory_for = _between_fences(scan.memory_for)
    segments.memory_for_segments = _between_fences(segments.memory_for_segments)


def _between_fences(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*arguments: Any) -> Any:
        memory = make(*arguments)
        return type(memory)(*map(fenced_copy, memory))

    return made
