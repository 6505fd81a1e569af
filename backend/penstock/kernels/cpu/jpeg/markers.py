"""Find markers in JPEG files."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import OPTIONS, kernel, njit

# The number of bytes searched at a time: at most 255, so that a count fits in a byte and LLVM vectorizes the loop.
_BLOCK = 64
_PREFIX = np.uint8(0xFF)


@njit(inline="always", **OPTIONS)
def _ends_scan(code: np.uint8) -> np.bool_:
    """Return whether a byte after the prefix forms a marker that ends a scan: neither stuffing, nor a fill byte, nor a restart."""
    return (code != np.uint8(0)) & (code != _PREFIX) & (np.uint8(np.uint8(code) - np.uint8(0xD0)) > np.uint8(7))


@kernel
def count_markers(data: np.ndarray, marker: int) -> int:
    """Return the number of occurrences of the prefix followed by ``marker``, a uint8."""
    last = data.size - 1
    whole = max(last, 0) // _BLOCK * _BLOCK
    count = 0
    for start in range(0, whole, _BLOCK):
        found = np.uint8(0)
        for i in range(_BLOCK):
            place = np.uint64(start + i)
            found = np.uint8(found + np.uint8((data[place] == _PREFIX) & (data[place + np.uint64(1)] == marker)))
        count += int(found)
    for i in range(whole, last):
        count += (data[i] == _PREFIX) & (data[i + 1] == marker)
    return count


@kernel
def first_marker(scan: np.ndarray) -> np.int64:
    """Return the code of the first marker that ends a scan's data, its byte after the prefix; -1 if there is none."""
    last = scan.size - 1
    whole = max(last, 0) // _BLOCK * _BLOCK
    begin = whole
    for start in range(0, whole, _BLOCK):
        found = np.uint8(0)
        for i in range(_BLOCK):
            place = np.uint64(start + i)
            found = np.uint8(found + np.uint8((scan[place] == _PREFIX) & _ends_scan(scan[place + np.uint64(1)])))
        if found:
            begin = start
            break
    for i in range(begin, last):
        if scan[i] == _PREFIX and _ends_scan(scan[i + 1]):
            return np.int64(scan[i + 1])
    return np.int64(-1)
