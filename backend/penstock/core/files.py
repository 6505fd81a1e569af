"""Files, and parts of them, read into blocks of memory in one call without the GIL."""

from __future__ import annotations

import struct

import numpy as np

from penstock.core.arrays import addresses
from penstock.core.loading import core

RANGE = np.dtype([("file", np.int64), ("start", np.int64), ("bytes", np.int64), ("place", np.int64)])
"""``PenstockRange``: a part of an open file (its descriptor), and its destination in a block, in bytes."""
# ``PenstockFiles`` and ``PenstockPiece``, whose fields all are words.
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
    """Read whole files one after the other into a block; return its size, or -1 if a file can't be read.

    If the block is too small, not all contents are read, but all sizes are right. All arrays are contiguous.

    Args:
        names: the paths, each ended by a zero: uint8.
        name_starts: the offsets at which the batch's paths begin: int64.
        known: the files' sizes when they were last read, in bytes, or -1: int64.
        alignment: the alignment of the contents in the block, in bytes.
        content_addresses: receives the offset in the block at which each file begins: int64.
        sizes: receives the sizes in bytes: int64.
        block: receives the contents: uint8.
    """
    *inputs, target = _addresses(names, name_starts, known, content_addresses, sizes, block)
    files = _FILES.pack(*inputs, alignment)
    size: int = core().penstock_read_files(files, len(name_starts), target, len(block))
    return size


def read_ranges(ranges: np.ndarray, block: np.ndarray) -> bool:
    """Read ranges of open files into a block; return whether all could be read.

    Args:
        ranges: ``RANGE``, contiguous.
        block: receives the contents: uint8.
    """
    pointers = _addresses(ranges, block)
    return bool(core().penstock_read_ranges(pointers[0], len(ranges), pointers[1], len(block)) == 0)


def copy_pieces(window_file: int, pieces: np.ndarray, window: np.ndarray, block: np.ndarray) -> bool:
    """Copy pieces of mapped files to a block, one after the other; return whether all could be read.

    Args:
        window_file: descriptor of a file whose contents are ``window``.
        pieces: addresses and sizes in bytes, each of at most the window's size: int64 of shape (n, 2), contiguous.
        window: memory to copy through: uint8.
        block: receives the contents: uint8.
    """
    sources, between, target = _addresses(pieces, window, block)
    through = _PIECE.pack(between, len(window))
    return bool(core().penstock_copy_pieces(window_file, sources, len(pieces), through, target, len(block)) == 0)


def _addresses(*arrays: np.ndarray) -> list[int]:
    pointers = addresses(list(arrays))
    assert pointers is not None, "the core takes contiguous arrays"
    found: list[int] = pointers.tolist()
    return found
