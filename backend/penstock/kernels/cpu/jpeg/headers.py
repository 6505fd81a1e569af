"""Reads the headers of many ordinary JPEGs at once.

Results equal those of :func:`penstock.kernels.codecs.headers.jpeg.check_jpeg`; any file that it might reject is left to
it.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.codecs.headers.jpeg import DENSEST, MAX_SMALL
from penstock.kernels.cpu.foreign import byte_at
from penstock.kernels.cpu.options import inner, kernel

HEIGHT, WIDTH, CHANNELS, EXIF_START, EXIF_STOP, COLUMNS = range(6)
"""The columns that describe a file. EXIF data begin and end at 0 if there are none."""

_FRAME_BYTES, _COMPONENT_BYTES = 8, 3


@kernel
def _number(place: int) -> int:
    return byte_at(place) << 8 | byte_at(place + 1)


@inner
def _is_exif(place: int, length: int) -> bool:
    return length >= 8 and (
        byte_at(place) == 0x45
        and byte_at(place + 1) == 0x78
        and byte_at(place + 2) == 0x69
        and byte_at(place + 3) == 0x66
        and byte_at(place + 4) == 0
        and byte_at(place + 5) == 0
    )


@inner
def _read_frame(place: int, length: int, size: int, found: np.ndarray) -> bool:
    """Reads a frame header after its length field; returns False if anything about it is unusual."""
    height, width, channels = _number(place + 1), _number(place + 3), byte_at(place + 5)
    if height == 0 or width == 0 or (channels != 1 and channels != 3) or byte_at(place) != 8:
        return False
    if length != _FRAME_BYTES + _COMPONENT_BYTES * channels:
        return False
    for component in range(channels):
        factors = byte_at(place + 7 + _COMPONENT_BYTES * component)
        if not (1 <= factors >> 4 <= 4 and 1 <= factors & 15 <= 4):
            return False
    if height * width > MAX_SMALL and height * width > DENSEST * size:
        return False
    found[HEIGHT], found[WIDTH], found[CHANNELS] = height, width, channels
    return True


@inner
def _read_header(data: int, size: int, found: np.ndarray) -> bool:
    """Reads a file's segments up to the first scan; returns False if anything about them is unusual."""
    if size < 4 or byte_at(data) != 0xFF or byte_at(data + 1) != 0xD8:
        return False
    position, described = 2, False
    while position + 4 <= size:
        place = data + position
        marker, length = byte_at(place + 1), _number(place + 2)
        if byte_at(place) != 0xFF:
            return False
        if marker == 0xDA:
            return described
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD9 or position + 2 + length > size:
            return False
        if 0xC0 <= marker <= 0xCF and marker != 0xC4 and marker != 0xC8 and marker != 0xCC:
            if described or length < _FRAME_BYTES or not _read_frame(place + 4, length, size, found):
                return False
            described = True
        elif marker == 0xE1 and _is_exif(place + 4, length):
            found[EXIF_START], found[EXIF_STOP] = position + 10, position + 2 + length
        position += 2 + length
    return False


@kernel
def _read_headers(places: np.ndarray, sizes: np.ndarray, found: np.ndarray) -> None:
    for number in range(len(places)):
        if not _read_header(places[number], sizes[number], found[number]):
            found[number, CHANNELS] = 0


def read_headers(places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The headers of the files at these addresses: a row of columns for each, with 0 channels if anything is
    unusual."""
    found = np.zeros((len(places), COLUMNS), np.int64)
    _read_headers(places, sizes, found)
    return found
