"""The location of records in the files of indexed data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np

from penstock.operators.readers._block_reading import Contents, read_ranges
from penstock.storage import Files
from penstock.tensors import HostPool


class Record(NamedTuple):
    """The location of a record: its file, and its start and size in bytes."""

    path: str
    start: int
    size: int

    def __str__(self) -> str:
        return f"{self.path} at index {self.start}"


class RecordTable(Sequence[Record]):
    """The locations of all records of a data set, in arrays, since there may be millions.

    Args:
        paths: the files' paths.
        files: the file of each record, as an index of ``paths``: int64.
        starts, sizes: the start and the size of each record, in bytes: int64.
    """

    def __init__(self, paths: Sequence[str], files: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> None:
        self._paths = paths
        self._files, self._starts, self._sizes = files, starts, sizes

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> RecordTable: ...
    def __getitem__(self, index: int | slice) -> Record | RecordTable:
        if isinstance(index, slice):
            return RecordTable(self._paths, self._files[index], self._starts[index], self._sizes[index])
        return Record(self._paths[int(self._files[index])], int(self._starts[index]), int(self._sizes[index]))

    def read(self, files: Files, indices: np.ndarray, pool: HostPool | None) -> Contents | None:
        """Read the records with these indices (int64); return None if a record can't be read."""
        return read_ranges(files, self._paths, self._files[indices], self._starts[indices], self._sizes[indices], pool)
