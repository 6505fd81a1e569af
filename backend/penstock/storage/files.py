"""The files that an operator may access."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO, Protocol

import numpy as np

from penstock.errors import ConfinedPathError
from penstock.storage import local
from penstock.storage.local import Allocate, OpenFile, fresh_memory
from penstock.storage.paths import is_below, is_remote, join, without_file_protocol


class Files:
    """The files that an operator may access: any, or only those in the folders to which its pipeline is confined.

    Args:
        roots: folders, and prefixes of remote paths (``s3://bucket/photos``); relative paths are resolved against the
            first. None: any file, with relative paths resolved against the current folder.

    >>> Files(["/models/resize"]).path("labels.txt")
    '/models/resize/labels.txt'
    """

    def __init__(self, roots: Sequence[str] | None = None) -> None:
        self._roots = None if roots is None else [without_file_protocol(root) for root in roots]
        # With symbolic links resolved, because access is checked with the resolved path of a file.
        self._folders = [os.path.realpath(root) for root in self._roots or () if not is_remote(root)]
        self._origins = [root.rstrip("/") for root in self._roots or () if is_remote(root)]

    @property
    def confined(self) -> bool:
        """Whether access is restricted."""
        return self._roots is not None

    def path(self, path: str) -> str:
        """Return the path with which to open a file or folder. If access is confined, it is absolute, and links are resolved.

        Raises:
            ConfinedPathError: the path is outside the folders.
        """
        if self._roots is None:
            return path
        path = without_file_protocol(path)
        if is_remote(path):
            if any(is_below(path, origin) for origin in self._origins):
                return path
        else:
            real = os.path.realpath(join(next(iter(self._folders), "/"), path))
            if any(os.path.commonpath([real, folder]) == folder for folder in self._folders):
                return real
        raise ConfinedPathError(
            f"'{path}' is outside of what the pipeline is confined to: {', '.join(self._folders + self._origins)}. "
            "For served models, `penstock serve --allow-path` grants more."
        )

    def includes(self, path: str) -> bool:
        """Return whether a file or folder may be accessed."""
        try:
            self.path(path)
        except ConfinedPathError:
            return False
        return True

    def check_argument(self, value: str | Sequence[str] | None) -> None:
        """Raise ConfinedPathError for absolute and remote paths outside the folders; a relative path is checked when it is opened."""
        for path in [value] if isinstance(value, str) else value or ():
            if is_remote(path) or os.path.isabs(path):
                self.path(path)

    def read(self, path: str, allocate: Allocate = fresh_memory) -> np.ndarray:
        """Return the contents of a file, uint8 of shape (n,).

        Args:
            path: the file's path.
            allocate: allocates memory for a local file of this size in bytes.

        Raises:
            OSError: the file cannot be read.
            ConfinedPathError: the path is outside the folders.

        >>> ANYWHERE.read("photo.jpg").shape  # doctest: +SKIP
        (257113,)
        """
        path = self.path(path)
        return _store(path).read(path, allocate)

    def read_text(self, path: str) -> str:
        """Return the contents of a text file (UTF-8)."""
        return self.read(path).tobytes().decode("utf-8", "surrogateescape")

    def read_range(self, path: str, start: int, size: int, allocate: Allocate = fresh_memory) -> np.ndarray:
        """Return ``size`` bytes of a file from ``start`` on, uint8 of shape (size,); ``allocate``: see :meth:`read`.

        Raises:
            OSError: the file cannot be read or is too short, or the range is invalid, for example read from a damaged index.
        """
        path = self.path(path)
        if min(start, size) < 0:
            raise OSError(f"'{path}': {size} bytes from byte {start} on is not a valid range")
        part = _store(path).read_range(path, start, size, allocate)
        if part.size != size:
            raise OSError(f"'{path}' ends before byte {start + size}")
        return part

    def opened(self, path: str) -> OpenFile:
        """Open a local file to read ranges of it; raise OSError if that fails."""
        return local.opened(self.path(path))

    def version(self, path: str) -> tuple[int, ...]:
        """Return a key that changes when a local file is rewritten; the key of a remote object never changes."""
        path = self.path(path)
        return () if is_remote(path) else local.version(path)

    def size(self, path: str) -> int:
        """Return the number of bytes in a file."""
        path = self.path(path)
        return _store(path).size(path)

    def open(self, path: str) -> BinaryIO:
        """Return a file opened for random access; for a remote file, only the ranges that are read are fetched."""
        path = self.path(path)
        return _store(path).open_file(path)

    def list_folder(self, path: str) -> tuple[list[str], list[str]]:
        """Return the names of the files and of the folders in a folder, both sorted; raise OSError if it cannot be read."""
        path = self.path(path)
        entries = _store(path).list_folder(path)
        files = sorted(name for name, is_folder in entries if not is_folder)
        return files, sorted(name for name, is_folder in entries if is_folder)


class _Store(Protocol):
    """The common interface of :mod:`penstock.storage.local` and :mod:`penstock.storage.remote`."""

    def read(self, path: str, allocate: Allocate) -> np.ndarray: ...
    def read_range(self, path: str, start: int, size: int, allocate: Allocate) -> np.ndarray: ...
    def size(self, path: str) -> int: ...
    def open_file(self, path: str) -> BinaryIO: ...
    def list_folder(self, path: str) -> list[tuple[str, bool]]: ...


def _store(path: str) -> _Store:
    if not is_remote(path):
        return local
    from penstock.storage import remote

    return remote


ANYWHERE = Files()
"""Files for pipelines that are not confined."""
