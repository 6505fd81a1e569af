"""Kernels that arrange the contents of a batch's files in one block of memory."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel

# Alignment of samples in the block, except for those that directly follow the previous one in their file.
_ALIGNMENT = 64
# In bytes: smaller gaps between two ranges of a file are read along with them.
_MAX_GAP_BYTES = 4096


@kernel
def lay_out(files: np.ndarray, starts: np.ndarray, sizes: np.ndarray, places: np.ndarray) -> int:
    """Set where ranges of files go in a block of memory; return its size in bytes.

    Ranges of one file with a small gap between them, or none, keep that distance in the block, so that one read gets both.

    Args:
        files: the number of each range's file: int64.
        starts, sizes: the starts and sizes of the ranges, in bytes: int64.
        places: receives the positions in the block: int64.
    """
    end = 0
    for i in range(len(sizes)):
        gap = starts[i] - starts[i - 1] - sizes[i - 1] if i and files[i] == files[i - 1] else -1
        places[i] = end + gap if 0 <= gap < _MAX_GAP_BYTES else (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        end = places[i] + sizes[i]
    return end


@kernel
def copy(source: np.ndarray, start: int, size: int, target: np.ndarray, place: int) -> None:
    """Copy ``size`` bytes between arrays of uint8 that do not overlap."""
    # Slice assignment checks for overlaps, which takes four times as long.
    here, there = source[start : start + size], target[place : place + size]
    for i in range(size):
        there[i] = here[i]


@kernel
def gather(block: np.ndarray, starts: np.ndarray, sizes: np.ndarray, target: np.ndarray) -> None:
    """Copy parts of a block, one after the other, to ``target``: uint8."""
    done = 0
    for i in range(len(starts)):
        copy(block, starts[i], sizes[i], target, done)
        done += sizes[i]
