"""Writes indices of data sets: the positions of the records in a file."""

from __future__ import annotations

import importlib
import os

from penstock.storage import ANYWHERE


def write_index(reader: str, path: str, index_path: str) -> int:
    """Write the index of a file; return the number of lines of the index. If the file is damaged, write nothing.

    Args:
        reader: the kind of file: ``webdataset``, ``tfrecord`` or ``mxnet``.
        path: the file's path.
        index_path: the path of the index; an existing file is replaced.

    Raises:
        ValueError: the file is damaged, or of another format.

    >>> write_index("webdataset", "train.tar", "train.idx")  # doctest: +SKIP
    1000
    """
    lines = list(importlib.import_module(f"penstock.operators.readers.{reader}").index_lines(ANYWHERE, path))
    partial = f"{index_path}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.replace(partial, index_path)
    return len(lines)
