"""Arrays in anonymous memory (``memfd``) that processes share.

Such memory has no name, so it disappears with the processes that use it.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.tensors.tensor import host_view

_ALIGNMENT = 64
_GROWTH_FACTOR = 1.25


@dataclass(frozen=True)
class SharedArray:
    """The position, shape and type of an array in shared memory."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


class Arrays:
    """Assigns positions in shared memory to the arrays in nested data."""

    def __init__(self) -> None:
        self.size = 0
        self._arrays: list[tuple[int, np.ndarray]] = []

    def place(self, data: object) -> Any:
        """Return the same lists and tuples, with positions instead of arrays; raise TypeError for other data."""
        if isinstance(data, (list, tuple)):
            return type(data)(self.place(item) for item in data)
        view = _checked_view(data)
        array = np.ascontiguousarray(view)
        placed = SharedArray(self.size, np.shape(view), array.dtype.str)
        self._arrays.append((self.size, array))
        self.size = _aligned(self.size + array.nbytes)
        return placed

    def write(self, memory: SharedMemory) -> bool:
        """Copy the arrays to their positions; return whether the memory had to grow, so that it has a new descriptor."""
        grown = memory.reserve(self.size)
        for offset, array in self._arrays:
            memory.bytes[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)
        return grown


def fetched(data: Any, memory: np.ndarray | None) -> Any:
    """Return the nested data, with positions replaced by arrays, which are views of the memory."""
    if isinstance(data, (list, tuple)):
        return type(data)(fetched(item, memory) for item in data)
    dtype = np.dtype(data.dtype)
    count = int(np.prod(data.shape, dtype=np.int64))
    if memory is None or not count:
        return np.empty(data.shape, dtype)
    return memory[data.offset : data.offset + count * dtype.itemsize].view(dtype).reshape(data.shape)


def mapped(descriptor: int, size: int) -> np.ndarray:
    """Return the bytes of memory that another process shares; they stay valid after the descriptor is closed."""
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


class SharedMemory:
    """Memory that can grow, and that processes share by sending its descriptor."""

    def __init__(self, size: int = 0) -> None:
        self.descriptor = -1
        self.size = 0
        self.bytes = np.empty(0, np.uint8)
        if size:
            self._allocate(size)

    def reserve(self, size: int) -> bool:
        """Replace the memory by larger memory if needed, without its contents; return whether it was replaced: the descriptor changes."""
        if size <= self.size:
            return False
        self._allocate(max(int(size * _GROWTH_FACTOR), mmap.PAGESIZE))
        return True

    def _allocate(self, size: int) -> None:
        self.close()
        self.size = size
        self.descriptor = os.memfd_create("penstock")
        os.ftruncate(self.descriptor, size)
        self.bytes = mapped(self.descriptor, size)

    def close(self) -> None:
        """Close the descriptor; the memory is freed when no process refers to it any longer."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1
        self.size = 0
        self.bytes = np.empty(0, np.uint8)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _checked_view(data: object) -> np.ndarray:
    array = host_view(data)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            "Unsupported callback return type. Expected NumPy array, PyTorch or MXNet cpu tensors, DALI TensorCPU, or list or tuple "
            f"of them representing sample. Got {type(data)} instead."
        )
    return array
