"""Read files, and ranges of files, into blocks of memory in one call without the GIL."""

from __future__ import annotations

import struct

import numpy as np

from penstock.core.arrays import addresses
from penstock.core.loading import core

RANGE = np.dtype([("file", np.int64), ("start", np.int64), ("bytes", np.int64), ("place", np.int64)])
"""``PenstockRange``: the descriptor of an open file, the start and size of a range in bytes, and the offset in a block to which it is
read."""
# ``PenstockFiles`` and ``PenstockPiece``, whose fields are all 64-bit integers.
_FILES, _PIECE = struct.Struct("6q"), struct.Struct("2q")


def read_files(
    names: np.ndarray,
    name_starts: np.ndarray,
    known: np.ndarray,
    alignment: int,
    content_addresses: np.ndarray,
    sizes: np.ndarray,
    block: np.ndarray,
) -> int:
    """Read whole files one after the other into a block; return the number of bytes that they need there, or -1 if a file cannot be read.

    If they need more than the block has, not all contents are read, but all sizes are right. All arrays are contiguous.

    Args:
        names: the paths, each terminated by a zero: uint8.
        name_starts: the offsets in ``names`` at which the batch's paths begin: int64.
        known: the files' sizes in bytes when they were last read, or -1: int64.
        alignment: the alignment in bytes of each file in the block.
        content_addresses: filled with the offset in the block at which each file begins: int64.
        sizes: filled with the files' sizes in bytes: int64.
        block: filled with the contents: uint8.
    """
    *inputs, target = _addresses(names, name_starts, known, content_addresses, sizes, block)
    files = _FILES.pack(*inputs, alignment)
    size: int = core().penstock_read_files(files, len(name_starts), target, len(block))
    return size


def read_ranges(ranges: np.ndarray, block: np.ndarray) -> bool:
    """Read ranges of open files into a block; return whether all ranges could be read.

    Args:
        ranges: an array of ``RANGE``, contiguous.
        block: filled with the contents: uint8.
    """
    pointers = _addresses(ranges, block)
    return bool(core().penstock_read_ranges(pointers[0], len(ranges), pointers[1], len(block)) == 0)


def copy_pieces(window_file: int, pieces: np.ndarray, window: np.ndarray, block: np.ndarray) -> bool:
    """Copy pieces of mapped files to a block, one after the other; return whether all pieces could be read.

    Args:
        window_file: the descriptor of the file that is mapped to ``window``.
        pieces: the pieces' addresses and sizes in bytes, none larger than the window: int64 of shape (n, 2), contiguous.
        window: the memory through which to copy: uint8.
        block: filled with the contents: uint8.
    """
    sources, between, target = _addresses(pieces, window, block)
    through = _PIECE.pack(between, len(window))
    return bool(core().penstock_copy_pieces(window_file, sources, len(pieces), through, target, len(block)) == 0)


def _addresses(*arrays: np.ndarray) -> list[int]:
    pointers = addresses(list(arrays))
    assert pointers is not None, "the core takes contiguous arrays"
    found: list[int] = pointers.tolist()
    return found
