"""Paths of local files and of remote objects."""

from __future__ import annotations

import os


def is_remote(path: str) -> bool:
    """Return whether the path begins with a protocol."""
    return "://" in path


def join(root: str, path: str) -> str:
    """Return ``path`` below ``root``, unless it is absolute or there is no root."""
    if not root or is_remote(path) or os.path.isabs(path):
        return path
    # Object stores take "." literally.
    return f"{root.rstrip('/')}/{path.removeprefix('./')}" if is_remote(root) else os.path.join(root, path)


def without_file_protocol(path: str) -> str:
    """Return the path without ``file://``."""
    return path.removeprefix("file://")


def is_below(path: str, origin: str) -> bool:
    """Return whether a remote path is ``origin`` or lies below it."""
    # Imported only here, as it is large and most paths are local.
    import urllib.parse

    rest = urllib.parse.unquote(path.removeprefix(origin))
    # fsspec chains file systems with "::"; the part after it is another path.
    return path.startswith(origin) and rest[:1] in ("", "/") and ".." not in rest.split("/") and "::" not in rest
