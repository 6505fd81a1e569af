"""The location of records in the files of indexed data sets."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """A span of a file."""

    path: str
    start: int
    size: int
