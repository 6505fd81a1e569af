"""Kernels that read the files of a batch into one block of memory, without the GIL."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.foreign import call, call_for_long
from penstock.kernels.cpu.options import kernel

# Where samples begin, unless they lie next to the previous one in their file, too.
_ALIGNMENT = 64
# In bytes: less than this between two ranges of a file is read along with them.
_MOST_BETWEEN = 4096
_SEEK_END = 2
# The pieces that one call of ``pwritev`` takes (IOV_MAX), and the size of their description, in bytes.
_MOST_PIECES, _PIECE_BYTES = 1024, 16
# In bytes: folders claim to be larger.
_LARGEST = 1 << 46


@kernel
def lay_out(files: np.ndarray, starts: np.ndarray, sizes: np.ndarray, places: np.ndarray) -> int:
    """Sets where ranges of files go in a block of memory; returns its size in bytes.

    Ranges that follow each other in a file keep their distance, so that they can be read at once.

    Args:
        files: of each range, as numbers: int64.
        starts, sizes: of the ranges, in bytes: int64.
        places: receives the positions in the block: int64.
    """
    end = 0
    for i in range(len(sizes)):
        gap = starts[i] - starts[i - 1] - sizes[i - 1] if i and files[i] == files[i - 1] else -1
        places[i] = end + gap if 0 <= gap < _MOST_BETWEEN else (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        end = places[i] + sizes[i]
    return end


@kernel
def read_ranges(
    pread: int, files: np.ndarray, starts: np.ndarray, sizes: np.ndarray, places: np.ndarray, block: np.ndarray
) -> bool:
    """Reads ranges of open files; returns whether all could be read.

    Args:
        pread: the address of the C function.
        files: descriptors, int64.
        starts, sizes, places: as in :func:`lay_out`.
        block: receives the contents: uint8.
    """
    first = 0
    while first < len(sizes):
        last = first
        while (
            last + 1 < len(sizes)
            and files[last + 1] == files[first]
            and places[last + 1] - places[first] == starts[last + 1] - starts[first]
        ):
            last += 1
        size = places[last] + sizes[last] - places[first]
        if places[first] + size > len(block) or not _filled(
            pread, files[first], starts[first], block.ctypes.data + places[first], size
        ):
            return False
        first = last + 1
    return True


@kernel
def _filled(pread: int, file: int, start: int, target: int, size: int) -> bool:
    """Reads part of a file; returns whether there were that many bytes."""
    done = 0
    while done < size:
        count = call_for_long(pread, (file, target + done, size - done, start + done))
        if count <= 0:
            return False
        done += count
    return True


@kernel
def read_files(
    functions: np.ndarray,
    names: np.ndarray,
    name_starts: np.ndarray,
    known: np.ndarray,
    alignment: int,
    places: np.ndarray,
    sizes: np.ndarray,
    block: np.ndarray,
) -> int:
    """Reads whole files one after the other into a block; returns its size, or -1 if a file can't be read.

    If the block is too small, only the sizes are of use.

    Args:
        functions: the addresses of ``open``, ``lseek``, ``pread`` and ``close``, and the flags to open files: int64.
        names: the paths, each ended by a zero: uint8.
        name_starts: where the batch's paths begin: int64.
        known: the files' sizes when they were last read, in bytes, or -1: int64.
        alignment: of the contents in the block, in bytes.
        places: receives where the contents begin: int64.
        sizes: receives the sizes in bytes: int64.
        block: receives the contents: uint8.
    """
    open_file, seek, pread, close, flags = functions
    end = 0
    for i in range(len(name_starts)):
        file = np.int64(call(open_file, (names.ctypes.data + name_starts[i], flags)))
        if file < 0:
            return -1
        end = (end + alignment - 1) // alignment * alignment
        target, size = block.ctypes.data + end, known[i]
        # One byte more than there should be: it is cheaper to see that a file ends than to ask for its size.
        unchanged = 0 <= size < len(block) - end and call_for_long(pread, (file, target, size + 1, 0)) == size
        readable = True
        if not unchanged:
            size = call_for_long(seek, (file, 0, _SEEK_END))
            readable = 0 <= size < _LARGEST
            if readable and end + size <= len(block):
                readable = _filled(pread, file, 0, target, size)
        call(close, (file,))
        if not readable:
            return -1
        places[i], sizes[i] = end, size
        end += size
    return end


@kernel
def copy(source: np.ndarray, start: int, size: int, target: np.ndarray, place: int) -> None:
    """Copies ``size`` bytes between arrays of uint8 that do not overlap."""
    # Assigning slices would look for overlaps, which takes four times as long.
    here, there = source[start : start + size], target[place : place + size]
    for i in range(size):
        there[i] = here[i]


@kernel
def gather(block: np.ndarray, starts: np.ndarray, sizes: np.ndarray, target: np.ndarray) -> None:
    """Copies parts of a block, one after the other, to ``target``: uint8."""
    done = 0
    for i in range(len(starts)):
        copy(block, starts[i], sizes[i], target, done)
        done += sizes[i]


@kernel
def copy_pieces(pwritev: int, window_file: int, pieces: np.ndarray, window: np.ndarray, block: np.ndarray) -> bool:
    """Copies pieces of mapped files to a block, one after the other; returns whether all could be read.

    Args:
        pwritev: the address of the C function.
        window_file: descriptor of a file whose contents are ``window``.
        pieces: addresses and sizes in bytes, each of at most the window's size: int64 of shape (n, 2), contiguous.
        window: memory to copy through: uint8.
        block: receives the contents: uint8.
    """
    first = done = 0
    while first < len(pieces):
        last, size = first, 0
        while last < len(pieces) and last - first < _MOST_PIECES and size + pieces[last, 1] <= len(window):
            size += pieces[last, 1]
            last += 1
        if last == first or done + size > len(block):
            return False
        address = pieces.ctypes.data + first * _PIECE_BYTES
        if call_for_long(pwritev, (window_file, address, last - first, 0)) != size:
            return False
        copy(window, 0, size, block, done)
        done += size
        first = last
    return True
