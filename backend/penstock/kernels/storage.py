"""Reading files: local ones directly, those with a protocol (``s3://``, ``gs://``, ``https://`` ...) through fsspec."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np


def is_remote(path: str) -> bool:
    """Whether the path names a protocol."""
    return "://" in path


def join(root: str, path: str) -> str:
    """``path`` below ``root``, unless it is absolute or there is no root."""
    if not root or is_remote(path) or os.path.isabs(path):
        return path
    return f"{root.rstrip('/')}/{path}" if is_remote(root) else os.path.join(root, path)


def read_file(path: str) -> np.ndarray:
    """The contents of a file, uint8 of shape (n,).

    Raises:
        OSError: it cannot be read.

    >>> read_file("photo.jpg").shape  # doctest: +SKIP
    (257113,)
    """
    if is_remote(path):
        return _own(_filesystem(path).cat_file(path))
    return np.fromfile(path, np.uint8)


def read_text(path: str) -> str:
    """The contents of a text file (UTF-8)."""
    return read_file(path).tobytes().decode("utf-8", "surrogateescape")


def read_range(path: str, start: int, size: int) -> np.ndarray:
    """``size`` bytes of a file from ``start`` on, uint8 of shape (size,).

    Raises:
        OSError: the file cannot be read, or is shorter.
    """
    if is_remote(path):
        part = _own(_filesystem(path).cat_file(path, start, start + size))
    else:
        part = np.array(_mapped(path, _version(path))[start : start + size])
    if part.size != size:
        raise OSError(f"'{path}' ends before byte {start + size}")
    return part


def list_folder(path: str) -> tuple[list[str], list[str]]:
    """The names of the files and of the folders in a folder, both sorted; raises OSError where it cannot be read."""
    if not is_remote(path):
        with os.scandir(path) as scan:
            entries = [(entry.name, entry.is_dir()) for entry in scan]
    else:
        listed = _filesystem(path).ls(path, detail=True)
        entries = [(item["name"].rstrip("/").rpartition("/")[2], item["type"] == "directory") for item in listed]
    files = sorted(name for name, folder in entries if not folder)
    return files, sorted(name for name, folder in entries if folder)


def _own(data: bytes) -> np.ndarray:
    """The bytes as an array that may be written to, as those of local files may."""
    return np.frombuffer(bytearray(data), np.uint8)


def _version(path: str) -> tuple[int, ...]:
    """What is another one when a file was written anew: its old memory may not even be there any more."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=64)
def _mapped(path: str, version: tuple[int, ...]) -> np.ndarray:
    """The file as mapped memory, which is read when it is looked at."""
    return np.memmap(path, np.uint8, "r") if os.path.getsize(path) else np.empty(0, np.uint8)


def _filesystem(path: str) -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"fsspec is needed to read '{path}': pip install fsspec") from error
    return fsspec.core.url_to_fs(path)[0]
