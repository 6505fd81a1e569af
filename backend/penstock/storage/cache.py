"""Caches remote objects in a folder on local disk, piece by piece."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

_log = logging.getLogger(__name__)

# The header of a cached piece: the magic bytes, when the piece was fetched, its length and its checksum.
_MAGIC: Final = b"penstck1"
_HEAD: Final = struct.Struct("<8sdQI")
# The names under which stores report a value that changes with an object's contents. The size alone does not tell that they changed.
_VERSION_FIELDS: Final = (
    "ETag", "etag", "Content-MD5", "content_md5", "Digest", "md5Hash", "crc32c", "generation", "VersionId",
    "Last-Modified", "LastModified", "last_modified", "updated", "mtime", "created",
)  # fmt: skip
# The largest number of objects whose reported information is remembered.
_MAX_REMEMBERED_OBJECTS: Final = 100_000
# A file that is still being written after this many seconds belongs to a process that died.
_ABANDONED_SECONDS: Final = 3600


class ObjectInfo(NamedTuple):
    """A store's information about an object.

    Attributes:
        version: bytes that change with the object's contents; empty if the store reports nothing that does.
        size: the size in bytes; None if unknown.
        reported_at: the time of the report, in seconds since 1970.
    """

    version: bytes
    size: int | None
    reported_at: float


class Cache:
    """A folder with pieces of remote objects, one piece per requested range; the least recently used are removed first.

    Several processes may share the folder. A piece is used only as long as the store reports the same ETag or checksum, size and
    modification time for its object as when the piece was fetched. If a store reports no ETag, checksum or modification time, the object
    is not cached. If the folder is full or cannot be written to, reads still succeed, without caching.

    Args:
        folder: a folder on a local disk; if it does not exist, it is created with access for its owner alone.
        max_bytes: the limit for the total size of cached pieces and pieces being written.
        check_after: seconds after which the store is asked again whether an object has changed; 0: it is asked at each read.

    Attributes:
        hits, misses: how often this process found a piece in the folder, and how often it had to fetch one.

    Raises:
        ValueError: ``max_bytes`` is not positive, or ``check_after`` is negative.

    >>> use_cache(Cache("/var/cache/penstock", max_bytes=200 << 30))  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = 16 << 30, check_after: float = 60.0) -> None:
        if max_bytes < 1 or check_after < 0:
            raise ValueError(
                f"`max_bytes` must be positive, and `check_after` at least 0, got {max_bytes} and {check_after}"
            )
        self.folder = Path(folder).absolute()
        self.max_bytes = max_bytes
        self.check_after = check_after
        self.hits = self.misses = 0
        self._infos: dict[str, ObjectInfo] = {}
        self._warned = False

    def piece(
        self, path: str, start: int, count: int, fetch: Callable[[], bytes], ask: Callable[[], Mapping[str, Any]]
    ) -> bytes | memoryview:
        """Return ``count`` bytes of an object from ``start`` on, fewer at the object's end; fetch them if they are not in the folder.

        Args:
            path: the object's path.
            start, count: the position of the first byte, and the number of bytes.
            fetch: fetches these bytes.
            ask: returns what the store reports about the object; its errors, such as FileNotFoundError, are raised.
        """
        info = self.info(path, ask)
        name = _name(path, info, start, count)
        found = self._find(name)
        if found is not None and found[0] > info.reported_at:
            # The piece was fetched after the last report. If the store still reports the same, the piece belongs to this version.
            info = self._ask(path, ask)
            doubtful, name = name, _name(path, info, start, count)
            if doubtful != name:
                self._path_of(doubtful).unlink(missing_ok=True)
                found = self._find(name)
        if found is not None and found[0] <= info.reported_at:
            self.hits += 1
            return found[1]
        self.misses += 1
        piece = fetch()
        if info.version:
            self._keep(name, piece)
        return piece

    def info(self, path: str, ask: Callable[[], Mapping[str, Any]]) -> ObjectInfo:
        """Return the object's information, asking the store if it is older than ``check_after``."""
        info = self._infos.get(path)
        if info is not None and time.time() - info.reported_at < self.check_after:
            return info
        return self._ask(path, ask)

    def _ask(self, path: str, ask: Callable[[], Mapping[str, Any]]) -> ObjectInfo:
        reported_at = time.time()
        reply = ask()
        signs = [f"{name}={reply[name]}" for name in _VERSION_FIELDS if reply.get(name)]
        size = reply.get("size")
        info = ObjectInfo("\0".join([*signs, str(size)]).encode() if signs else b"", size, reported_at)
        if len(self._infos) >= _MAX_REMEMBERED_OBJECTS:
            self._infos.clear()
        self._infos[path] = info
        return info

    def _find(self, name: str) -> tuple[float, memoryview] | None:
        """Return when a piece was fetched, and the piece; None if the piece is missing or damaged."""
        path = self._path_of(name)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        if len(content) >= _HEAD.size:
            magic, fetched, length, checksum = _HEAD.unpack_from(content)
            piece = memoryview(content)[_HEAD.size :]
            if magic == _MAGIC and length == len(piece) and checksum == zlib.crc32(piece):
                return fetched, piece
        _log.warning("'%s' is damaged, and is fetched again", path)
        return None

    def _keep(self, name: str, piece: bytes) -> None:
        fetched = time.time()
        try:
            temporary = self._reserve(_HEAD.size + len(piece))
            if temporary is None:
                return
            try:
                with temporary.open("wb") as file:
                    file.write(_HEAD.pack(_MAGIC, fetched, len(piece), zlib.crc32(piece)))
                    file.write(piece)
                target = self._path_of(name)
                target.parent.mkdir(mode=0o700, exist_ok=True)
                # Locked: a process that counts bytes during the move could miss the piece in both folders.
                with self._ledger():
                    temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            if not self._warned:
                _log.warning("remote objects cannot be cached in '%s': %s", self.folder, error)
            self._warned = True

    def _path_of(self, name: str) -> Path:
        return self.folder / name[:2] / name

    def _reserve(self, size: int) -> Path | None:
        """Reserve room and return an empty file for ``size`` bytes; None if there is no room because other pieces are being written."""
        if size > self.max_bytes:
            return None
        writing = self.folder / "writing"
        writing.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._ledger() as ledger:
            written = os.pread(ledger, 20, 0)
            used = int(written) if written else self.max_bytes
            if used + size > self.max_bytes:
                used = self._make_room(size)
            if used + size > self.max_bytes:
                return None
            # The name includes the size, for processes that count bytes before the file is complete.
            temporary = writing / f"{size}-{uuid.uuid4().hex}"
            temporary.touch(mode=0o600)
            os.pwrite(ledger, b"%20d" % (used + size), 0)
        return temporary

    @contextlib.contextmanager
    def _ledger(self) -> Iterator[int]:
        """Lock and return the file with the number of bytes in use; only the holder of the lock may count the cache's files."""
        ledger = os.open(self.folder / "used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(ledger, fcntl.LOCK_EX)
            yield ledger
        finally:
            os.close(ledger)

    def _make_room(self, size: int) -> int:
        """Remove the least recently used pieces; return the number of bytes still in use."""
        used = 0
        pieces = []
        now = time.time()
        for folder in self.folder.iterdir():
            for entry in os.scandir(folder) if folder.is_dir() else ():
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    if folder.name != "writing":
                        used += status.st_size
                        pieces.append((status.st_mtime_ns, status.st_size, entry.path))
                    elif now - status.st_mtime > _ABANDONED_SECONDS:
                        os.unlink(entry.path)
                    else:
                        used += int(entry.name.partition("-")[0])
        # Remove a little more than needed, so that the folder is not listed for every new piece.
        wanted = self.max_bytes - max(size, self.max_bytes // 16)
        for _, piece_size, path in sorted(pieces):
            if used <= wanted:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            used -= piece_size
        return used


def _name(path: str, info: ObjectInfo, start: int, count: int) -> str:
    """Return the file name of a piece; it reveals nothing about the object."""
    return hashlib.sha256(b"\0".join([path.encode(), info.version, b"%d" % start, b"%d" % count])).hexdigest()
