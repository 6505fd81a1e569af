"""Kernels that arrange the contents of a batch's files in one block of memory."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel

# The alignment in bytes of ranges in the block, except for ranges that follow the previous one closely in the same file.
_ALIGNMENT = 64
# Gaps of fewer bytes between two ranges of a file are read together with the ranges.
_MAX_GAP_BYTES = 4096


@kernel
def lay_out(files: np.ndarray, starts: np.ndarray, sizes: np.ndarray, places: np.ndarray) -> int:
    """Choose the positions of ranges of files in a block of memory; return the block's size in bytes.

    If consecutive ranges of one file have no gap or a small gap between them, they get the same distance in the block, so that one read
    gets both.

    Args:
        files: the number of each range's file: int64.
        starts, sizes: the start and the size of each range, in bytes: int64.
        places: the position of each range in the block: int64; output.
    """
    end = 0
    for i in range(len(sizes)):
        gap = starts[i] - starts[i - 1] - sizes[i - 1] if i and files[i] == files[i - 1] else -1
        places[i] = end + gap if 0 <= gap < _MAX_GAP_BYTES else (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        end = places[i] + sizes[i]
    return end


@kernel
def copy(source: np.ndarray, start: int, size: int, target: np.ndarray, place: int) -> None:
    """Copy ``size`` bytes between uint8 arrays that do not overlap: from index ``start`` of the source to index ``place`` of the target."""
    # A loop, because numba's slice assignment checks for overlaps and takes four times as long.
    here, there = source[start : start + size], target[place : place + size]
    for i in range(size):
        there[i] = here[i]


@kernel
def gather(block: np.ndarray, starts: np.ndarray, sizes: np.ndarray, target: np.ndarray) -> None:
    """Copy parts of a block to ``target``, one after the other.

    Args:
        block: uint8.
        starts, sizes: the start and the size of each part, in bytes: int64.
        target: uint8 of as many bytes as all parts have; output.
    """
    done = 0
    for i in range(len(starts)):
        copy(block, starts[i], sizes[i], target, done)
        done += sizes[i]
