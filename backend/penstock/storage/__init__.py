"""Reads local files and, through fsspec, remote objects (``s3://``, ``gs://``, ``https://`` ...).

Remote reads are retried after temporary failures, see :func:`configure`. They may be cached on local disk, see :func:`use_cache`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from penstock.storage.files import ANYWHERE, Files
from penstock.storage.local import OpenFile
from penstock.storage.paths import is_remote, join

if TYPE_CHECKING:
    from penstock.storage.cache import Cache
    from penstock.storage.remote import Retries, StorageError, configure, use_cache

__all__ = [
    "ANYWHERE",
    "Cache",
    "Files",
    "OpenFile",
    "Retries",
    "StorageError",
    "configure",
    "is_remote",
    "join",
    "use_cache",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    # Loaded lazily: few programs read remote objects, and the libraries are large.
    from penstock.storage import remote

    return getattr(remote, name)


if "PENSTOCK_CACHE" in os.environ:
    # Imported now, so that invalid settings raise here.
    from penstock.storage import remote as _remote  # noqa: F401
