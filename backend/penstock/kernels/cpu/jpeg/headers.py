"""Reads the headers of many ordinary JPEGs at once.

Results equal those of :func:`penstock.kernels.codecs.headers.jpeg.check_jpeg`; any file that it might reject is left to
it.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.codecs.headers.jpeg import DENSEST, MAX_SMALL
from penstock.kernels.cpu.foreign import byte_at
from penstock.kernels.cpu.options import inner, kernel

HEIGHT, WIDTH, CHANNELS, ORIENTATION, COLUMNS = range(5)
"""The columns that describe a file, in the order of :class:`penstock.kernels.codecs.image_description.JpegHeaders`.

The orientation is that of EXIF data; 0: there is none.
"""

_ORIENTATION_TAG, _LONG, _TIFF = 0x0112, 4, 42
_ENTRY_BYTES = 12
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
def _integer(place: int, count: int, little: bool) -> int:
    """The unsigned integer of ``count`` bytes at an address."""
    value = 0
    for index in range(count):
        value = value << 8 | byte_at(place + (count - 1 - index if little else index))
    return value


@inner
def _orientation(data: int, size: int) -> int:
    """The orientation in a TIFF structure of ``size`` bytes; 0 if there is none."""
    if size < 8 or byte_at(data) != byte_at(data + 1) or (byte_at(data) != 0x49 and byte_at(data) != 0x4D):
        return 0
    little = byte_at(data) == 0x49
    directory = _integer(data + 4, 4, little)
    if _integer(data + 2, 2, little) != _TIFF or directory + 2 > size:
        return 0
    for number in range(_integer(data + directory, 2, little)):
        entry = directory + 2 + _ENTRY_BYTES * number
        if entry + 4 > size:
            return 0
        if _integer(data + entry, 2, little) == _ORIENTATION_TAG:
            length = 4 if _integer(data + entry + 2, 2, little) == _LONG else 2
            return _integer(data + entry + 8, length, little) if entry + 8 + length <= size else 0
    return 0


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
def read_header(data: int, size: int, found: np.ndarray) -> bool:
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
            found[ORIENTATION] = _orientation(place + 10, length - 8)
        position += 2 + length
    return False


@kernel
def _read_headers(places: np.ndarray, sizes: np.ndarray, found: np.ndarray) -> None:
    for number in range(len(places)):
        if not read_header(places[number], sizes[number], found[number]):
            found[number, CHANNELS] = 0


@inner
def is_whole(place: int, size: int) -> bool:
    """Whether the file at an address ends as JPEGs do, before any zeros."""
    while size > 0 and byte_at(place + size - 1) == 0:
        size -= 1
    return size >= 2 and byte_at(place + size - 2) == 0xFF and byte_at(place + size - 1) == 0xD9


@inner
def is_baseline(data: int, size: int) -> bool:
    """Whether the first frame of a file is sequential, coded by Huffman."""
    position = 2
    while position + 4 <= size:
        marker = byte_at(data + position + 1)
        if byte_at(data + position) != 0xFF or marker == 0xDA:
            return False
        if 0xC0 <= marker <= 0xCF and marker != 0xC4 and marker != 0xC8 and marker != 0xCC:
            return marker <= 0xC1
        # Bytes of 0xFF may fill the space before a marker.
        position += 1 if marker == 0xFF else 2 + _number(data + position + 2)
    return False


@inner
def is_turned(orientation: int) -> bool:
    """Whether an image with this orientation is not stored upright."""
    return 2 <= orientation <= 8


@kernel
def fill_whole(places: np.ndarray, sizes: np.ndarray, whole: np.ndarray) -> None:
    """Tells for the files at these addresses whether they end as JPEGs do, before any zeros."""
    for number in range(len(places)):
        whole[number] = is_whole(places[number], sizes[number])


def read_headers(places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The headers of the files at these addresses: a row of columns for each, with 0 channels if anything is
    unusual."""
    found = np.zeros((len(places), COLUMNS), np.int64)
    _read_headers(places, sizes, found)
    return found
