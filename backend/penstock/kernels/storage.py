"""Reading files: local ones directly, those with a protocol (``s3://``, ``gs://``, ``https://`` ...) through fsspec."""

from __future__ import annotations

import functools
import os
import urllib.parse
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import ConfinedPathError


class Files:
    """The files that an operator may touch: any, or only those in the folders that its pipeline is confined to.

    Args:
        roots: folders, and beginnings of remote paths (``s3://bucket/photos``). Relative paths start from the first of them.
            None: any file, and relative paths start from the current folder.

    >>> Files(["/models/resize"]).path("labels.txt")
    '/models/resize/labels.txt'
    """

    def __init__(self, roots: Sequence[str] | None = None) -> None:
        self._roots = None if roots is None else [_local_or_remote(root) for root in roots]
        # Where links have led to: a file is where it really lies.
        self._folders = [os.path.realpath(root) for root in self._roots or () if not is_remote(root)]
        self._origins = [root.rstrip("/") for root in self._roots or () if is_remote(root)]

    @property
    def confined(self) -> bool:
        """Whether there are files that it refuses."""
        return self._roots is not None

    def path(self, path: str) -> str:
        """The path by which a file or folder may be opened: absolute and without links where files are confined.

        Raises:
            ConfinedPathError: it is outside of the folders.
        """
        if self._roots is None:
            return path
        path = _local_or_remote(path)
        if is_remote(path):
            if any(_is_below(path, origin) for origin in self._origins):
                return path
        else:
            real = os.path.realpath(join(next(iter(self._folders), "/"), path))
            if any(os.path.commonpath([real, folder]) == folder for folder in self._folders):
                return real
        raise ConfinedPathError(
            f"'{path}' is outside of what the pipeline is confined to: {', '.join(self._folders + self._origins)}. A "
            "served model's parameter `allowed_paths` names more."
        )

    def check_argument(self, value: str | Sequence[str] | None) -> None:
        """Raises ConfinedPathError for paths that are outside, whatever an operator joins them with."""
        for path in [value] if isinstance(value, str) else value or ():
            if is_remote(path) or os.path.isabs(path):
                self.path(path)

    def read(self, path: str) -> np.ndarray:
        """See :func:`read_file`."""
        return read_file(self.path(path))

    def read_text(self, path: str) -> str:
        """See :func:`read_text`."""
        return read_text(self.path(path))

    def read_range(self, path: str, start: int, size: int) -> np.ndarray:
        """See :func:`read_range`."""
        return read_range(self.path(path), start, size)

    def list_folder(self, path: str) -> tuple[list[str], list[str]]:
        """See :func:`list_folder`."""
        return list_folder(self.path(path))


def _local_or_remote(path: str) -> str:
    return path.removeprefix("file://")


def _is_below(path: str, origin: str) -> bool:
    """Whether a remote path is ``origin`` or what it holds."""
    rest = urllib.parse.unquote(path.removeprefix(origin))
    # fsspec chains file systems with "::", so that what follows is another path.
    return path.startswith(origin) and rest[:1] in ("", "/") and ".." not in rest.split("/") and "::" not in rest


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


ANYWHERE = Files()
"""For pipelines that are not confined."""


def _filesystem(path: str) -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"fsspec is needed to read '{path}': pip install fsspec") from error
    return fsspec.core.url_to_fs(path)[0]
