"""Reads files: local ones, and through fsspec remote objects (``s3://``, ``gs://``, ``https://`` ...).

Remote reads are retried after temporary failures; see :func:`configure`.
"""

from penstock.storage.files import ANYWHERE, Files
from penstock.storage.local import OpenFile
from penstock.storage.paths import is_remote, join
from penstock.storage.remote import Retries, StorageError, configure

__all__ = ["ANYWHERE", "Files", "OpenFile", "Retries", "StorageError", "configure", "is_remote", "join"]
