"""Reads files: local ones, and through fsspec remote objects (``s3://``, ``gs://``, ``https://`` ...).

Remote reads are retried after temporary failures, see :func:`configure`, and may be kept on local disk, see :func:`use_cache`.
"""

from penstock.storage.cache import Cache
from penstock.storage.files import ANYWHERE, Files
from penstock.storage.local import OpenFile
from penstock.storage.paths import is_remote, join
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
