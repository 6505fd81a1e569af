"""``nvidia.dali.backend.SharedMem``: memory that processes share through a file descriptor."""

from __future__ import annotations

import mmap
import os

_CLOSED = -1


class SharedMem:
    """The memory of an anonymous file.

    Args:
        handle: the descriptor of the file, which this object owns from then on; negative: a new file.
        size: the size in bytes.
    """

    def __init__(self, handle: int, size: int) -> None:
        self._file = _CLOSED
        if size < 1:
            raise ValueError(f"`size` must be a positive number of bytes. Got: {size}")
        self._file = handle
        if handle < 0:
            self._file = os.memfd_create("penstock")
            os.truncate(self._file, size)
        self._memory: mmap.mmap | None = mmap.mmap(self._file, size)
        self._size = size

    @property
    def handle(self) -> int:
        """The file descriptor; -1 if it is closed."""
        return self._file

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._size

    def buf(self) -> memoryview:
        """Return the memory.

        Raises:
            ValueError: the memory is closed.
        """
        if self._memory is None:
            raise ValueError("Cannot create buffer - no memory has been mapped")
        return memoryview(self._memory)

    def resize(self, size: int, trunc: bool) -> None:
        """Map the file with another size; ``trunc``: also resize the file. Views of the memory must be released first."""
        if trunc:
            os.truncate(self._file, size)
        if self._memory is not None:
            self._memory.close()
        self._memory, self._size = mmap.mmap(self._file, size), size

    def close_handle(self) -> None:
        """Close the file; the memory remains mapped."""
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def close(self) -> None:
        """Close the file and release the memory."""
        self.close_handle()
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def __del__(self) -> None:
        self.close_handle()
