"""Reading many short pieces of files: files are mapped into memory, and the operating system copies the pieces from there.

Reading each piece with a system call would cost more than copying it. Copying from mapped memory is fast, but the process is killed if
the file has been truncated meanwhile. Therefore the operating system makes the copies: the call `write` copies pieces to a file in
memory that this process has mapped, too, and returns an error if a piece is missing.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

import numpy as np

from penstock.core.files import copy_pieces
from penstock.storage import OpenFile

# The size in bytes of the file in memory, and so the greatest size of a piece; it should fit the processor's cache.
WINDOW: Final = 1 << 18


class MappedFile:
    """A file that is mapped into memory.

    Args:
        file: an open file; it must not be empty.

    Attributes:
        file: the file.
        address: the address of the file's first byte.
    """

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self._contents = np.frombuffer(mmap.mmap(file.descriptor, file.size, prot=mmap.PROT_READ), np.uint8)
        self.address = self._contents.ctypes.data


class PieceCopier:
    """Copies pieces of mapped files into a block of memory."""

    def __init__(self) -> None:
        self._window_file = OpenFile(os.memfd_create("penstock", os.MFD_CLOEXEC), WINDOW)
        os.ftruncate(self._window_file.descriptor, WINDOW)
        self._window = np.frombuffer(mmap.mmap(self._window_file.descriptor, WINDOW), np.uint8)

    def copy(self, pieces: np.ndarray, block: np.ndarray) -> bool:
        """Copy pieces to a block, one after the other; return False if a piece is missing because its file was truncated.

        Args:
            pieces: int64 of shape (n, 2): the address of each piece in a mapped file, and its size in bytes, at most :data:`WINDOW`.
            block: uint8; output.
        """
        return copy_pieces(self._window_file.descriptor, pieces, self._window, block)
