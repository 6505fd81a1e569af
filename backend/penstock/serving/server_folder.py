"""Creates the temporary folder of a server, and removes folders that dead servers left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from penstock.serving.control import ServerError
from penstock.serving.guardian import remove_shared_memory

_PREFIX = "penstock-serve-"
_OWNER = "owner.json"
_SHARED_MEMORY = re.compile(r"penstock_[0-9a-f]{12}_")


class ServerFolder:
    """A new folder for the files of one server.

    As long as its owner lives, the owner holds a lock on a file in the folder, so that other servers can see that the folder
    is in use. The kernel releases the lock when the owner ends, however it ends.

    Args:
        shared_memory: the prefix of the names of the server's shared memory regions.

    Attributes:
        path: the folder's path.

    Raises:
        ServerError: the folder cannot be created.
    """

    def __init__(self, shared_memory: str) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = self._take_lock({"process": os.getpid(), "shared_memory": shared_memory})
        except OSError as error:
            raise ServerError(
                f"no temporary folder can be made for the server's files: {error.strerror}; set TMPDIR to a folder that can be written"
            ) from error

    def _take_lock(self, owner: dict[str, object]) -> IO[str]:
        # The file gets its name after it is locked, so that nobody finds it unlocked while its owner lives.
        beside = self.path / f"{_OWNER}.new"
        file = beside.open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(owner, file)
        file.flush()
        beside.rename(self.path / _OWNER)
        return file

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def remove_leftovers() -> list[Path]:
    """Remove the folders and the shared memory of this user's dead servers; return the folders."""
    removed = []
    try:
        folders = list(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))
    except OSError:
        return []
    for folder in folders:
        with contextlib.suppress(OSError), _locked_owner(folder) as owner:
            if owner is not None:
                if _SHARED_MEMORY.fullmatch(owner):
                    remove_shared_memory(owner)
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


@contextlib.contextmanager
def _locked_owner(folder: Path) -> Iterator[str | None]:
    """Lock a dead server's folder during the context; yield the prefix of its shared memory, or None if the server may live."""
    path = folder / _OWNER
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid() or not path.is_file():
        yield None
        return
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        try:
            prefix = str(json.load(file)["shared_memory"])
        except (ValueError, KeyError, TypeError):
            prefix = ""  # the file is incomplete: the disk was full
        yield prefix
