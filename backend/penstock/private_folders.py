"""Private folders of this user in the temporary folder, for executable files if the user's cache cannot be written to."""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from pathlib import Path


def users_cache(name: str) -> Path | None:
    """Return the folder with this name in the user's cache; it may not exist. None for a user without a home directory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    # Without a home directory, the path still begins with "~".
    return cache / "penstock" / name if cache.is_absolute() else None


@functools.cache
def private_folder(name: str) -> Path | None:
    """Return a folder that all processes of this user share, and that only they can write to; None if it cannot be created, or
    belongs to another user.

    Anyone may write to the temporary folder, so a folder found there is used only if it belongs to this user and only this user has access.
    """
    try:
        _private_path(name).mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return existing_private_folder(name)


def existing_private_folder(name: str) -> Path | None:
    """Return the folder of :func:`private_folder` for reading; None if it does not exist yet."""
    try:
        folder = _private_path(name)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return folder if private else None


def _private_path(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"penstock-{name}-{os.geteuid()}"
