"""Checks AVIF and HEIC files; finds the largest image that a file's properties declare.

Source: ISO/IEC 23008-12 (HEIF), 6.5.3 (ispe) and 9 (iprp, ipco); ISO/IEC 14496-12, 4.2 (boxes); AV1 Image File Format 1.1.
"""

from __future__ import annotations

import struct

from penstock.kernels.codecs.headers.declared import Declared, check, check_density
from penstock.kernels.codecs.headers.jpeg2000 import boxes

NAME_OF_FIRST_BOX = b"ftyp"
_BRANDS = (b"avif", b"avis", b"mif1", b"msf1")
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis")
_MAX_EXTENT = 1 << 16
_MAX_PIXELS_PER_BYTE = 10_000


def is_avif(data: memoryview) -> bool:
    """Return whether the bytes begin like an AVIF file."""
    return bytes(data[4:8]) == NAME_OF_FIRST_BOX and bytes(data[8:12]) in _BRANDS


def is_heic(data: memoryview) -> bool:
    """Return whether the bytes begin like a HEIC file, the format of photographs on phones."""
    return bytes(data[4:8]) == NAME_OF_FIRST_BOX and bytes(data[8:12]) in _HEIC_BRANDS


def check_heic(data: memoryview) -> Declared:
    """Return the size of the largest image of a HEIC file; raise CorruptImageError for impossible header values."""
    return check_avif(data, "HEIC")


def check_avif(data: memoryview, kind: str = "AVIF") -> Declared:
    """Return the size of the largest image of an AVIF file; raise CorruptImageError for impossible header values."""
    meta = _box(data, b"meta", kind)
    # A full box begins with version and flags.
    properties = _box(_box(meta[4:], b"iprp", kind), b"ipco", kind)
    sizes = [_size(contents, kind) for name, contents in boxes(properties, kind) if name == b"ispe"]
    check(bool(sizes), f"{kind}: it does not declare an image's size")
    declared = max(sizes, key=lambda image: image.height * image.width)
    check_density(declared, len(data), _MAX_PIXELS_PER_BYTE, kind)
    return declared


def _box(data: memoryview, wanted: bytes, kind: str) -> memoryview:
    for name, contents in boxes(data, kind):
        if name == wanted:
            return contents
    check(False, f"{kind}: it has no box {wanted.decode()}")
    raise AssertionError("unreachable")


def _size(extents: memoryview, kind: str) -> Declared:
    check(len(extents) >= 12, f"{kind}: an image's size is cut short")
    width, height = struct.unpack_from(">II", extents, 4)
    check(0 < width <= _MAX_EXTENT and 0 < height <= _MAX_EXTENT, f"{kind}: an image is of {height}x{width} pixels")
    return Declared(height, width)
