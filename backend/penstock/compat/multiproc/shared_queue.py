"""Queues of messages in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.context import BaseContext

import numpy as np

from penstock.compat.multiproc.messages import ShmMessageDesc
from penstock.runtime.shared_arrays import SharedMemory, mapped


class SharedMem:
    """The memory of a queue; `handle` is its file descriptor."""

    def __init__(self, handle: int, data: np.ndarray) -> None:
        self.handle = handle
        self.data = data


class ShmQueue:
    """A queue of messages between processes, in shared memory.

    A forked process inherits the memory; a spawned one receives the object, and must open the memory with :meth:`open_shm`.

    Args:
        mp: the multiprocessing context of the processes.
        capacity: the largest number of messages in the queue.
    """

    # The number of integers in the header before the messages: whether the queue is closed, where it begins, how many messages it has.
    _HEADER = 3

    def __init__(self, mp: BaseContext, capacity: int) -> None:
        self.capacity = capacity
        self._changed = mp.Condition()
        memory = SharedMemory(self._size())
        self._memory: SharedMemory | None = memory
        self.shm: SharedMem | None = SharedMem(memory.descriptor, memory.bytes)

    def _size(self) -> int:
        return 8 * self._HEADER + self.capacity * ShmMessageDesc.FORMAT.size

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_memory": None, "shm": None}

    def open_shm(self, handle: int) -> None:
        """Open the memory in a process that was spawned."""
        self.shm = SharedMem(handle, mapped(handle, self._size()))

    def _header(self) -> np.ndarray:
        assert self.shm is not None, "The queue's memory must be opened in this process: `open_shm`"
        return self.shm.data[: 8 * self._HEADER].view(np.int64)

    def _slot(self, index: int) -> np.ndarray:
        assert self.shm is not None
        size = ShmMessageDesc.FORMAT.size
        begin = 8 * self._HEADER + index % self.capacity * size
        return self.shm.data[begin : begin + size]

    def put(self, msgs: Sequence[ShmMessageDesc]) -> bool | None:
        """Add messages; return None if the queue is closed. Raise RuntimeError if the queue is full."""
        packed = [message.packed() for message in msgs]
        with self._changed:
            header = self._header()
            closed, begin, count = header.tolist()
            if closed:
                return None
            if count + len(packed) > self.capacity:
                raise RuntimeError("The queue is full")
            for index, data in enumerate(packed):
                self._slot(begin + count + index)[:] = np.frombuffer(data, np.uint8)
            header[2] += len(packed)
            self._changed.notify_all()
        return True

    def get(self, num_samples: int | None = 1) -> list[ShmMessageDesc] | None:
        """Wait for a message, and take out up to `num_samples` messages (None: all); return None if the queue is closed."""
        with self._changed:
            header = self._header()
            self._changed.wait_for(lambda: bool(header[0] or header[2]))
            closed, begin, count = header.tolist()
            if closed:
                return None
            received = count if num_samples is None else min(count, num_samples)
            found = [
                ShmMessageDesc(*ShmMessageDesc.FORMAT.unpack(self._slot(begin + index).tobytes()))
                for index in range(received)
            ]
            header[1:] = (begin + received) % self.capacity, count - received
        return found

    def close(self) -> None:
        """Close the queue for all processes."""
        with self._changed:
            self._header()[0] = 1
            self._changed.notify_all()
