"""Private folders of this user in the temporary folder, for executable files: where no cache can be written."""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from pathlib import Path


def users_cache(name: str) -> Path | None:
    """Return the folder of this name in the user's cache, which may not exist; None for a user without a home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    # Without a home, it still begins with "~".
    return cache / "penstock" / name if cache.is_absolute() else None


@functools.cache
def private_folder(name: str) -> Path | None:
    """Return a folder that all processes of this user share, and only they can write; None if it cannot be made, or
    belongs to another.

    Anyone may write to the temporary folder, so a folder found there is trusted only if it is this user's alone.
    """
    try:
        _private_path(name).mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return existing_private_folder(name)


def existing_private_folder(name: str) -> Path | None:
    """Return :func:`private_folder`'s folder for reading; None if nothing has made it yet."""
    try:
        folder = _private_path(name)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return folder if private else None


def _private_path(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"penstock-{name}-{os.geteuid()}"
