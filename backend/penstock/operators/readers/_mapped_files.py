"""Many short pieces of files: mapped into memory, and copied from there by the kernel.

A call for each piece would cost more than the piece. Reading mapped memory is fast, but kills the process if the file has
been truncated meanwhile. To prevent that, the kernel of the operating system copies the pieces (`write`) to a file in memory
that this process has mapped, too: for it, truncation is an ordinary error.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

import numpy as np

from penstock.core.files import copy_pieces
from penstock.storage import OpenFile

# In bytes: a piece copied at once should fit the processor's cache.
WINDOW: Final = 1 << 18


class MappedFile:
    """A file's contents.

    Args:
        file: an open file, not empty.

    Attributes:
        file: the file.
        address: the first byte's address.
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
        """Copy the pieces, one after the other; return whether all of them are still there.

        Args:
            pieces: addresses in mapped files, and sizes in bytes up to :data:`WINDOW`: int64 of shape (n, 2).
            block: receives the contents: uint8.
        """
        return copy_pieces(self._window_file.descriptor, pieces, self._window, block)
