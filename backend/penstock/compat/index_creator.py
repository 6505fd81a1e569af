"""The interface of DALI's scripts ``wds2idx`` and ``rec2idx`` for programs that import them."""

from __future__ import annotations

import argparse
import os
from types import TracebackType
from typing import ClassVar

from penstock.operators.readers.indexing import write_index


class IndexCreator:
    """Writes the index of a data file.

    >>> with IndexCreator("train.tar", "train.idx") as creator:  # doctest: +SKIP
    ...     creator.create_index()
    """

    reader: ClassVar[str]

    def __init__(self, uri: str, idx_path: str, verbose: bool = True) -> None:
        self.uri = uri
        self.idx_path = idx_path
        self.verbose = verbose

    def __enter__(self) -> IndexCreator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Do nothing: files are open only while the index is written."""

    def close(self) -> None:
        """See :meth:`open`."""

    def reset(self) -> None:
        """See :meth:`open`."""

    def create_index(self) -> None:
        """Write the index; raise ValueError if the file is damaged."""
        count = write_index(self.reader, self.uri, self.idx_path)
        if self.verbose:
            print(f"{self.idx_path}: {count} lines")

    @classmethod
    def main(cls) -> None:
        """Run as a program; its arguments are a file and the index to write, by default beside the file."""
        parser = argparse.ArgumentParser(description=f"Writes an index for `fn.readers.{cls.reader}`.")
        parser.add_argument("file")
        parser.add_argument("index", nargs="?")
        options = parser.parse_args()
        cls(options.file, options.index or f"{os.path.splitext(options.file)[0]}.idx").create_index()
