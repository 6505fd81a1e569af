"""Reads the sizes of many ordinary PNGs at once.

Results equal those of :func:`penstock.kernels.codecs.headers.png.check_png`; any file that it might reject, or that may be
turned or animated, is left to it.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.foreign import byte_at
from penstock.kernels.cpu.options import inner, kernel

_SIGNATURE, _HEADER, _OVERHEAD = 8, 13, 12
_IHDR, _IDAT, _PLTE, _TRNS, _IEND = 0x49484452, 0x49444154, 0x504C5445, 0x74524E53, 0x49454E44
_TEXT, _GAMMA, _PHYSICAL, _TIME = 0x74455874, 0x67414D41, 0x70485973, 0x74494D45
# Larger images might be denser than their files can be.
_FEW = 1 << 22


@inner
def _word(place: int) -> int:
    return byte_at(place) << 24 | byte_at(place + 1) << 16 | byte_at(place + 2) << 8 | byte_at(place + 3)


@inner
def _is_plain(start: int, size: int) -> bool:
    """Whether the file consists of chunks that say nothing of the size or orientation, and ends with the last one."""
    position = _SIGNATURE
    while position + _OVERHEAD <= size:
        name = _word(start + position + 4)
        position += _OVERHEAD + _word(start + position)
        if name == _IEND:
            return position == size
        if name not in (_IHDR, _IDAT, _PLTE, _TRNS, _TEXT, _GAMMA, _PHYSICAL, _TIME):
            return False
    return False


@kernel
def read_sizes(places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Height and width of each file, int64 of shape (files, 2); 0 for files that are to be looked at more closely."""
    found = np.zeros((len(places), 2), np.int64)
    for number in range(len(places)):
        start, size = places[number], sizes[number]
        if size < _SIGNATURE + _OVERHEAD + _HEADER or _word(start) != 0x89504E47 or _word(start + 4) != 0x0D0A1A0A:
            continue
        header = start + _SIGNATURE + 8
        if _word(start + _SIGNATURE) != _HEADER or _word(header - 4) != _IHDR:
            continue
        width, height = _word(header), _word(header + 4)
        bits, colour, rest = byte_at(header + 8), byte_at(header + 9), _word(header + 9) & 0xFFFFFF
        if bits != 8 or colour == 1 or colour == 5 or colour > 6 or rest > 1:
            continue
        if 0 < width <= _FEW and 0 < height <= _FEW and width * height <= _FEW and _is_plain(start, size):
            found[number, 0], found[number, 1] = height, width
    return found
