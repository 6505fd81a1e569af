"""Files on this machine."""

from __future__ import annotations

import functools
import os
from typing import BinaryIO

import numpy as np


def read(path: str) -> np.ndarray:
    """The contents of a file, uint8 of shape (n,)."""
    return np.fromfile(path, np.uint8)


def read_range(path: str, start: int, size: int) -> np.ndarray:
    """``size`` bytes of a file from ``start`` on; fewer at its end."""
    return np.array(_mapped(path, _version(path))[start : start + size])


def size(path: str) -> int:
    """The number of bytes in a file."""
    return os.path.getsize(path)


def open_file(path: str) -> BinaryIO:
    """The file, opened for reading."""
    return open(path, "rb")


def list_folder(path: str) -> list[tuple[str, bool]]:
    """The names of a folder's entries, and whether each is a folder."""
    with os.scandir(path) as scan:
        return [(entry.name, entry.is_dir()) for entry in scan]


def _version(path: str) -> tuple[int, ...]:
    """A key that changes when a file is rewritten, after which its old mapping may be invalid."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=64)
def _mapped(path: str, version: tuple[int, ...]) -> np.ndarray:
    """The file mapped to memory, read on access."""
    return np.memmap(path, np.uint8, "r") if os.path.getsize(path) else np.empty(0, np.uint8)
