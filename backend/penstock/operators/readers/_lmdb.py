"""The base class of readers of LMDB databases, in which Caffe and Caffe2 store data sets."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from penstock.operators.readers._reader import Reader
from penstock.storage import is_remote, join


class Entry(NamedTuple):
    """The key of a record, and the number of its database among the reader's databases."""

    database: int
    key: bytes


class LmdbReader(Reader):
    """Base class of readers of LMDB databases."""

    shuffles_list = False

    def list_items(self) -> Sequence[Entry]:
        self._databases = [_open(os.path.realpath(self._located(path))) for path in self.args["path"]]
        entries = []
        for number, database in enumerate(self._databases):
            with database.begin() as transaction, transaction.cursor() as cursor:
                entries += [Entry(number, key) for key in cursor.iternext(keys=True, values=False)]
        return entries

    def _located(self, path: str) -> str:
        """Return the real path of a database's folder. Check access to the folder and to the file in it, which may be a link."""
        if is_remote(path):
            raise ValueError(f"A database is mapped into memory, so it must be a local folder: copy '{path}' first")
        self.files.path(join(path, "data.mdb"))
        return self.files.path(path)

    def value(self, entry: Entry) -> memoryview:
        """Return the record of an entry; empty if there is none."""
        with self._databases[entry.database].begin() as transaction:
            return memoryview(transaction.get(entry.key) or b"")

    @contextmanager
    def values(self, indices: np.ndarray) -> Iterator[list[np.ndarray]]:
        """Return a context manager with the records of a batch as uint8 arrays. They are views of the databases' memory, and must be read
        inside the context.
        """
        found: list[np.ndarray] = []
        items = self.items
        with ExitStack() as stack:
            for number, entries in groupby((items[index] for index in indices.tolist()), key=attrgetter("database")):
                transaction = stack.enter_context(self._databases[number].begin(buffers=True))
                cursor = stack.enter_context(transaction.cursor())
                keys = [entry.key for entry in entries]
                found += [np.frombuffer(value, np.uint8) for _, value in cursor.getmulti(keys)]
            yield found

    def entry_name(self, entry: Entry) -> str:
        """Describe the location of an entry in messages: its database's path and its key."""
        return f"{self.args['path'][entry.database]} at key {entry.key.decode(errors='replace')}"


@functools.cache
def _open(path: str) -> Any:
    """Return the open database. Cached because a process may open a database only once."""
    try:
        import lmdb
    except ImportError as error:
        raise ImportError(f"lmdb is needed to read '{path}': pip install lmdb") from error
    try:
        return lmdb.open(path, readonly=True, lock=False, readahead=False, max_readers=1024)
    except lmdb.Error as error:
        raise ValueError(f"LMDB Error: {error}") from error
