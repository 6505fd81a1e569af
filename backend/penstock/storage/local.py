"""Files on this machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

Allocate = Callable[[int], np.ndarray]
"""Allocates ``n`` bytes: uint8 of shape (n,)."""


def fresh_memory(size: int) -> np.ndarray:
    """Return newly allocated memory."""
    return np.empty(size, np.uint8)


def read(path: str, allocate: Allocate = fresh_memory) -> np.ndarray:
    """Return the contents of a file, uint8 of shape (n,)."""
    # numpy.fromfile takes four times as long for a small file.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read(descriptor, 0, allocate(os.fstat(descriptor).st_size))
    except OSError as error:
        # Opening a folder succeeds, and then reading fails without naming the path.
        error.filename = path
        raise
    finally:
        os.close(descriptor)


def read_range(path: str, start: int, size: int, allocate: Allocate = fresh_memory) -> np.ndarray:
    """Return ``size`` bytes of a file from ``start`` on; fewer at its end."""
    file = opened(path)
    # A damaged index may ask for more bytes than fit into memory, so allocate no more than the file has.
    return _read(file.descriptor, start, allocate(min(size, max(file.size - start, 0))))


def opened(path: str) -> OpenFile:
    """Return the open file, shared by all its readers; it is closed when the last of them is done."""
    return _opened(path, version(path))


def _read(descriptor: int, start: int, content: np.ndarray) -> np.ndarray:
    """Fill ``content``; return the part that was filled, shorter at the file's end."""
    # Files are not memory-mapped: truncating one meanwhile would crash the process.
    done = 0
    while done < content.size:
        count = os.preadv(descriptor, [content[done:].data], start + done)
        if not count:
            return content[:done]
        done += count
    return content


def size(path: str) -> int:
    """Return the number of bytes in a file."""
    return os.path.getsize(path)


def open_file(path: str) -> BinaryIO:
    """Open the file for reading."""
    return open(path, "rb")


def list_folder(path: str) -> list[tuple[str, bool]]:
    """Return the names of a folder's entries, and whether each is a folder."""
    with os.scandir(path) as scan:
        return [(entry.name, entry.is_dir()) for entry in scan]


def version(path: str) -> tuple[int, ...]:
    """Return a key that changes when a file is rewritten."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class OpenFile:
    """A file that stays open until its last reader is done.

    Attributes:
        descriptor: a file descriptor for ``os.preadv`` and the like.
        size: the size in bytes when it was opened.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size

    def __del__(self) -> None:
        os.close(self.descriptor)


@functools.lru_cache(maxsize=64)
def _opened(path: str, version: tuple[int, ...]) -> OpenFile:
    return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), version[2])
