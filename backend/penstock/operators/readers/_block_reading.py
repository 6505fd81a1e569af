"""Reading a batch's files, or ranges of files, in one call that does not hold the GIL.

If that is not possible (a file is missing, truncated or remote), the reader reads the batch sample by sample, which also
finds the sample at fault.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from penstock.core.files import RANGE, read_files
from penstock.core.files import read_ranges as read_parts
from penstock.data_types import DALIDataType, numpy_dtype
from penstock.storage import Files, is_remote
from penstock.tensors import HostPool, TensorListCPU

# A batch is copied if more bytes than this were read for each byte of the batch: views would keep all bytes read in memory.
_MAX_READ_PER_USED_BYTE: Final = 8


class Contents(NamedTuple):
    """The bytes read for a batch.

    Attributes:
        block: the memory that holds all samples: uint8 of shape (n,).
        places: the start of each sample in the block, int64 of shape (samples,).
        sizes: the size of each sample in bytes, int64 of shape (samples,).
    """

    block: np.ndarray
    places: np.ndarray
    sizes: np.ndarray

    def of_parts(
        self, dtype: DALIDataType, starts: np.ndarray, sizes: np.ndarray, infos: Sequence[str] = ()
    ) -> TensorListCPU:
        """Return parts of the block as a batch of vectors: views, or copies if views would keep a much larger block in memory.

        Args:
            dtype: the type of the vectors' elements.
            starts, sizes: the start and the size of each vector in the block, in bytes: int64.
            infos: the samples' sources.
        """
        kind = numpy_dtype(dtype)
        shapes = list(zip((sizes // kind.itemsize).tolist()))
        total = int(sizes.sum())
        if total * _MAX_READ_PER_USED_BYTE >= self.block.size:
            return TensorListCPU.of_parts(self.block, starts, shapes, dtype, 1, infos)
        from penstock.operators.readers._files_cpu import gather

        elements = np.empty(total, np.uint8)
        gather(self.block, starts, sizes, elements)
        batch = TensorListCPU.of_elements(elements.view(kind), shapes, dtype=dtype)
        batch.source_infos = infos
        return batch


def _memory(pool: HostPool | None, size: int) -> np.ndarray:
    return np.empty(size, np.uint8) if pool is None else pool.take(size)


class PathTable:
    """The paths of a data set as C strings, in one array.

    Args:
        paths: paths of local files.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        names = [os.fsencode(path) + b"\0" for path in paths]
        lengths = np.fromiter(map(len, names), np.int64, len(names))
        self._starts = np.cumsum(lengths) - lengths
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._sizes = np.full(len(names), -1)
        self._expected = 0

    @staticmethod
    def of(files: Files, paths: Sequence[str]) -> PathTable | None:
        """Return the table of a data set's paths; None if its files must be read one by one."""
        # With confined files, the target of a link must be checked whenever the link is followed.
        special = files.confined or any(is_remote(path) or "\0" in path for path in paths)
        return None if special else PathTable(paths)

    def read(self, indices: np.ndarray, pool: HostPool | None, alignment: int = 1) -> Contents | None:
        """Read files; return their contents, or None if a file can't be read.

        Args:
            indices: the positions of the files in the table, int64.
            pool: the pool to take memory from; None: allocate it.
            alignment: the alignment in bytes of each file's contents in the block; 1: contents follow each other without gaps.
        """
        starts, known = self._starts[indices], self._sizes[indices]
        places, sizes = np.empty((2, len(indices)), np.int64)
        block = _memory(pool, self._expected)
        total = read_files(self._names, starts, known, alignment, places, sizes, block)
        if total > block.size:
            # Allocate more than needed, for later batches of slightly larger files.
            self._expected = total + total // 8
            block = _memory(pool, self._expected)
            total = read_files(self._names, starts, known, alignment, places, sizes, block)
        if not 0 <= total <= block.size:
            return None
        self._sizes[indices] = sizes
        return Contents(block[:total], places, sizes)


def read_ranges(
    files: Files,
    paths: Sequence[str],
    numbers: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    pool: HostPool | None,
) -> Contents | None:
    """Read ranges of files to one block of memory; return None if a range can't be read.

    Args:
        files: the accessible files.
        paths: the paths of the data set's files.
        numbers: the file of each range, as an index of ``paths``: int64.
        starts, sizes: the start and the size of each range, in bytes: int64.
        pool: the pool to take memory from; None: allocate it.
    """
    from penstock.operators.readers._files_cpu import lay_out

    used = [0] if len(paths) == 1 else np.unique(numbers).tolist()
    if any(is_remote(paths[number]) for number in used) or starts.min() < 0 or sizes.min() < 0:
        return None
    try:
        opened = {number: files.opened(paths[number]) for number in used}
    except OSError:
        return None
    descriptors, extents = np.zeros((2, used[-1] + 1), np.int64)
    for number, file in opened.items():
        descriptors[number], extents[number] = file.descriptor, file.size
    if (sizes > extents[numbers] - starts).any():
        return None
    places = np.empty(len(sizes), np.int64)
    block = _memory(pool, lay_out(numbers, starts, sizes, places))
    ranges = np.empty(len(sizes), RANGE)
    ranges["file"], ranges["start"], ranges["bytes"], ranges["place"] = descriptors[numbers], starts, sizes, places
    return Contents(block, places, sizes) if read_parts(ranges, block) else None
