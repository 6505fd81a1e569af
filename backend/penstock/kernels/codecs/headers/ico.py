"""Checks the headers of ICO files: the directory, and the header of each image in it.

Source: Microsoft, The format of icon resources (1995), and Wikipedia, ICO (file format), for images in PNG.
"""

from __future__ import annotations

import struct

from penstock.kernels.codecs.headers import bmp, png
from penstock.kernels.codecs.headers.declared import Declared, check

SIGNATURE = b"\0\0\1\0"
_DIRECTORY, _ENTRY = 6, 16
_MAX_IMAGES = 256


def check_ico(data: memoryview) -> Declared:
    """Return the values declared for the largest image of an ICO file; raise CorruptImageError for impossible header values."""
    check(len(data) >= _DIRECTORY, "ICO: it is cut short within its header")
    (count,) = struct.unpack_from("<H", data, 4)
    check(0 < count <= _MAX_IMAGES, f"ICO: it has {count} images")
    check(len(data) >= _DIRECTORY + count * _ENTRY, "ICO: it is cut short within its directory")
    images = [_check_entry(data, _DIRECTORY + index * _ENTRY) for index in range(count)]
    return max(images, key=lambda image: image.height * image.width)


def _check_entry(data: memoryview, entry: int) -> Declared:
    size, offset = struct.unpack_from("<II", data, entry + 8)
    check(offset + size <= len(data), "ICO: an image lies beyond its end")
    image = data[offset : offset + size]
    if bytes(image[:8]) == png.SIGNATURE:
        # Unlike a plain PNG file, the container of this PNG is not supported by nvImageCodec.
        return png.check_png(image)._replace(is_plain=False)
    declared = bmp.check_bitmap(image, len(data), "ICO")
    # The declared height includes the mask, which is stored after the image.
    return declared._replace(height=declared.height // 2)
