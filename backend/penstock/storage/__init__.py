"""Where bytes come from: local files, and objects behind a protocol (``s3://``, ``gs://``, ``https://`` ...) by fsspec.

Remote reads that fail for a while are tried again; see :func:`configure`.
"""

from penstock.storage.files import ANYWHERE, Files
from penstock.storage.paths import is_remote, join
from penstock.storage.remote import Retries, StorageError, configure

__all__ = ["ANYWHERE", "Files", "Retries", "StorageError", "configure", "is_remote", "join"]
