"""Remote objects, through fsspec: requests that hang or fail temporarily are retried."""

from __future__ import annotations

import asyncio
import errno
import io
import logging
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast

import numpy as np

from penstock.storage.cache import Cache

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from typing_extensions import Buffer

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
# Larger objects are read in pieces of this size, so that a failed request loses little.
_PIECE_BYTES: Final = 8 << 20
# Errors that a retry cannot fix.
_PERMANENT_ERRORS = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    ValueError,
    TypeError,
    ImportError,
)
# The 4xx status codes that mean "later": time-out, too early, too many requests.
_TEMPORARY_STATUS = (408, 425, 429)
_UNSATISFIABLE = 416


class StorageError(OSError):
    """A remote object could not be read, even after retries."""


@dataclass(frozen=True)
class Retries:
    """How remote reads are retried.

    Attributes:
        attempts: the number of attempts at one request, including the first.
        timeout: seconds that an attempt may take, in addition to ``seconds_per_mib``.
        seconds_per_mib: seconds added to ``timeout`` for each requested MiB.
        first_pause: seconds before the second attempt; pauses double, and are randomly shortened by up to a quarter.
        max_pause: the longest pause, in seconds.
    """

    attempts: int = 6
    timeout: float = 20.0
    seconds_per_mib: float = 1.0
    first_pause: float = 0.1
    max_pause: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"There must be at least one attempt, got {self.attempts}")
        if min(self.timeout, self.seconds_per_mib, self.first_pause, self.max_pause) <= 0:
            raise ValueError(f"Times must be positive, got {self}")

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after ``failures`` failed attempts."""
        # At most 64, because 2.0 ** 1024 overflows.
        return min(self.first_pause * 2.0 ** (min(failures, 64) - 1), self.max_pause) * random.uniform(0.75, 1)


_retries = Retries()


def configure(retries: Retries) -> None:
    """Set how this process retries remote reads.

    >>> configure(Retries(attempts=3, timeout=5))  # doctest: +SKIP
    """
    global _retries
    _retries = retries


def _cache_of_environment() -> Cache | None:
    folder, size = os.environ.get("PENSTOCK_CACHE"), os.environ.get("PENSTOCK_CACHE_BYTES", "")
    if not folder:
        return None
    if size and not size.isdecimal():
        raise ValueError(f"PENSTOCK_CACHE_BYTES must be a number of bytes, got '{size}'")
    return Cache(folder, int(size)) if size else Cache(folder)


_cache = _cache_of_environment()


def use_cache(cache: Cache | None) -> None:
    """Set where this process caches remote objects; None: nowhere.

    Until the first call, the environment variables ``PENSTOCK_CACHE`` and ``PENSTOCK_CACHE_BYTES`` set the folder and its size, so
    that processes started by this one or by others, such as servers and Ray's actors, share the cache.

    >>> use_cache(Cache("/var/cache/penstock", max_bytes=200 << 30))  # doctest: +SKIP
    """
    global _cache
    _cache = cache


def read(path: str, allocate: object = None) -> np.ndarray:
    """Return the contents of an object, uint8 of shape (n,), which may be written to."""
    pieces: list[bytes | memoryview] = [_first_piece(path)]
    while len(pieces[-1]) == _PIECE_BYTES:
        pieces.append(_cat(path, len(pieces) * _PIECE_BYTES, _PIECE_BYTES))
    return np.frombuffer(bytearray(b"").join(pieces), np.uint8)


def read_range(path: str, start: int, size: int, allocate: object = None) -> np.ndarray:
    """Return ``size`` bytes of an object from ``start`` on; fewer at its end."""
    return np.frombuffer(bytearray(_cat(path, start, size)), np.uint8)


def size(path: str) -> int:
    """Return the number of bytes in an object; raise StorageError if the store doesn't report it."""
    reported = _call(path, "info").get("size") if _cache is None else _cache.info(path, lambda: _ask(path)).size
    if reported is None:
        raise StorageError(f"The server of '{path}' does not report its size")
    return int(reported)


def open_file(path: str) -> BinaryIO:
    """Return the object as a file that fetches ranges on demand, with a MiB of read-ahead."""
    return cast("BinaryIO", io.BufferedReader(_RemoteFile(path), 1 << 20))


def list_folder(path: str) -> list[tuple[str, bool]]:
    """Return the name of each entry of a folder, and whether the entry is a folder."""
    listed = _call(path, "ls", detail=True)
    return [(item["name"].rstrip("/").rpartition("/")[2], item["type"] == "directory") for item in listed]


class _RemoteFile(io.RawIOBase):
    """An object read in ranges."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = size(path)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        target = memoryview(buffer)
        wanted = min(len(target), self._size - self._position)
        if wanted <= 0:
            return 0
        part = _cat(self._path, self._position, wanted)
        target[: len(part)] = part
        self._position += len(part)
        return len(part)


def _first_piece(path: str) -> bytes | memoryview:
    def fetch() -> bytes:
        try:
            return _fetch(path, 0, _PIECE_BYTES)
        except (FileNotFoundError, PermissionError, ImportError, StorageError):
            raise
        except Exception:
            # Some stores don't support ranges.
            whole: bytes = _call(path, "cat_file")
            return whole

    return _cached_or_fetched(path, 0, _PIECE_BYTES, fetch)


def _cat(path: str, start: int, count: int) -> bytes | memoryview:
    return _cached_or_fetched(path, start, count, lambda: _fetch(path, start, count))


def _cached_or_fetched(path: str, start: int, count: int, fetch: Callable[[], bytes]) -> bytes | memoryview:
    """Return the bytes that ``fetch`` returns, or a cached copy of them."""
    return fetch() if _cache is None else _cache.piece(path, start, count, fetch, lambda: _ask(path))


def _ask(path: str) -> dict[str, Any]:
    """Return the store's current information about an object."""
    # Some file systems remember what a store reported when a folder was listed.
    filesystem(path).invalidate_cache(path)
    reported: dict[str, object] = _call(path, "info")
    return reported


def _fetch(path: str, start: int, count: int) -> bytes:
    try:
        part: bytes = _call(path, "cat_file", count, start=start, end=start + count)
    except Exception as error:
        if _is_beyond_the_end(error):
            return b""
        raise
    # A server that doesn't support ranges sends everything.
    return part if len(part) <= count else part[start : start + count]


def _call(path: str, method: str, count: int = 0, **arguments: object) -> Any:
    """Return the result of a method of the path's file system; ``count`` is the number of bytes expected."""
    system = filesystem(path)
    timeout = _retries.timeout + _retries.seconds_per_mib * count / (1 << 20)
    if not system.async_impl:
        return _retried(path, lambda: getattr(system, method)(path, **arguments))

    from fsspec.asyn import sync

    return _retried(path, lambda: sync(system.loop, getattr(system, f"_{method}"), path, timeout=timeout, **arguments))


def _retried(path: str, request: Callable[[], _T]) -> _T:
    """Return the result of the request, retried while it fails temporarily."""
    retries, began = _retries, time.monotonic()
    for failures in range(1, retries.attempts + 1):
        try:
            return request()
        except Exception as error:
            if _is_permanent(error):
                raise _with_name(path, error) from None
            reason = "no answer in time" if isinstance(error, (TimeoutError, asyncio.TimeoutError)) else error
            if failures == retries.attempts:
                raise StorageError(
                    f"'{path}' could not be read in {failures} attempts and {time.monotonic() - began:.1f} s: {reason}"
                ) from error
            _log.warning("attempt %d of %d to read '%s' failed: %s", failures, retries.attempts, path, reason)
            time.sleep(retries.pause(failures))
    raise AssertionError("unreachable")


def _with_name(path: str, error: Exception) -> Exception:
    """Return the error, with the object's path added if the message lacks it."""
    kind = next((kind for kind in (FileNotFoundError, PermissionError) if isinstance(error, kind)), None)
    return error if kind is None or path in str(error) else kind(f"'{path}' cannot be read: {error}")


def _is_beyond_the_end(error: BaseException) -> bool:
    """Return whether a range was refused because it starts past the object's end, which s3fs reports as an invalid argument."""
    return getattr(error, "status", None) == _UNSATISFIABLE or getattr(error, "errno", None) == errno.EINVAL


def _is_permanent(error: BaseException) -> bool:
    if _is_beyond_the_end(error):
        return True
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and type(cause).__module__.startswith("aiohttp"):
        # fsspec reports any failure of a request to a web server as one of these; the cause tells whether it is permanent.
        return cause is not None and _is_permanent(cause)
    status = getattr(error, "status", None)
    if isinstance(status, int) and 400 <= status < 500:
        return status not in _TEMPORARY_STATUS
    return isinstance(error, _PERMANENT_ERRORS)


def filesystem(path: str) -> AbstractFileSystem:
    """Return the file system of the path's protocol; raise ImportError if its library is not installed."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"fsspec is needed to read '{path}': pip install fsspec") from error
    return fsspec.core.url_to_fs(path)[0]
