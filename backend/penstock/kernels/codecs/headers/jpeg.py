"""Checks the headers of JPEG files: the segments before the first scan.

Source: ITU-T T.81, annex B (markers, frame headers B.2.2); Exif 2.32, 4.7.2 (APP1).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.kernels.codecs.image_errors import CorruptImageError

SIGNATURE = b"\xff\xd8"
_FILL, _END_OF_IMAGE, _START_OF_SCAN, _APP1 = 0xFF, 0xD9, 0xDA, 0xE1
_LAST = {_START_OF_SCAN, _END_OF_IMAGE}
_WITHOUT_LENGTH = {_FILL, 0x01, *range(0xD0, 0xD8), *_LAST}
_START_OF_FRAME = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_FIRST_ARITHMETIC = 0xC9
_PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
# The beginnings of a segment (prefix, marker and length) and of a frame header (precision, height, width and components).
_SEGMENT, _FRAME = struct.Struct(">BBH").unpack_from, struct.Struct(">BHHB").unpack_from
_FRAME_SIZE, _COMPONENT_SIZE, _MAX_COMPONENTS = 8, 3, 4
# The possible sampling factors; the horizontal and the vertical one share a byte.
_FACTORS = frozenset(across << 4 | down for across in range(1, 5) for down in range(1, 5))
_PRECISIONS = range(2, 17)
# The largest number of pixels that is always accepted, and the largest number of pixels per byte. A Huffman code of 1 bit can encode
# a block; in a separate scan, a component has at most 16 such blocks per code.
MAX_SMALL, DENSEST = 1 << 24, 10_000


class JpegHeader(NamedTuple):
    """The values that the segments before a JPEG's first scan declare.

    Attributes:
        height, width, channels: the height, the width and the number of channels of the image, as stored.
        exif: the TIFF structure in the EXIF data; None: there is none.
    """

    height: int
    width: int
    channels: int
    exif: memoryview | None


def check_jpeg(data: memoryview) -> JpegHeader:
    """Return the values that a JPEG's header declares; raise CorruptImageError for impossible ones."""
    exif: memoryview | None = None
    size: tuple[int, int, int] | None = None
    position = 2
    try:
        while True:
            prefix, marker, length = _SEGMENT(data, position)
            if prefix != 0xFF:
                raise CorruptImageError(f"Damaged JPEG: no marker at byte {position}")
            if marker in _WITHOUT_LENGTH:
                if marker in _LAST:
                    break
                position += 1 if marker == _FILL else 2
                continue
            if marker in _START_OF_FRAME:
                if size is not None:
                    raise CorruptImageError("Damaged JPEG: it has more than one frame header")
                size = _check_frame(data, position + 4, marker, length)
            elif marker == _APP1 and bytes(data[position + 4 : position + 10]) == b"Exif\0\0":
                exif = data[position + 10 : position + 2 + length]
            position += 2 + length
    except struct.error:
        raise CorruptImageError(f"Truncated JPEG: its {len(data)} bytes end within the header") from None
    if size is None or 0 in size:
        raise CorruptImageError("Damaged JPEG: no frame header precedes its data")
    return JpegHeader(*size, exif)


def has_several_scans(data: memoryview, channels: int) -> bool:
    """Return whether decoders of a JPEG store all of its coefficients: it is progressive, or its first scan lacks a component. The
    header must have been checked.
    """
    position = 2
    while True:
        _, marker, length = _SEGMENT(data, position)
        if marker in _PROGRESSIVE:
            return True
        if marker in _LAST:
            # A scan header begins with the number of components in the scan.
            return bytes(data[position + 4 : position + 5]) != bytes([channels])
        position += (1 if marker == _FILL else 2) if marker in _WITHOUT_LENGTH else 2 + length


def _check_frame(data: memoryview, start: int, marker: int, length: int) -> tuple[int, int, int]:
    precision, height, width, channels = _FRAME(data, start)
    if channels > _MAX_COMPONENTS or length != _FRAME_SIZE + _COMPONENT_SIZE * channels:
        raise CorruptImageError(f"Damaged JPEG: its frame header has {length} bytes for {channels} components")
    first = start + _FRAME_SIZE - 1
    if not _FACTORS.issuperset(data[first : first + _COMPONENT_SIZE * channels : _COMPONENT_SIZE]):
        raise CorruptImageError("Damaged JPEG: a component's sampling factor is not from 1 to 4")
    if precision not in _PRECISIONS:
        raise CorruptImageError(f"Damaged JPEG: its samples have {precision} bits")
    pixels = height * width
    if pixels > MAX_SMALL and pixels > DENSEST * len(data) and marker < _FIRST_ARITHMETIC:
        raise CorruptImageError(f"{len(data)} bytes cannot hold the {height}x{width} pixels that the header declares")
    return height, width, channels
