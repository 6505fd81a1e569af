"""Checks the headers of BMP files: the file header and the bitmap header.

Source: Microsoft, Windows GDI: BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER, BITMAPV5HEADER.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from penstock.kernels.codecs.headers.declared import Declared, check, check_density

SIGNATURE = b"BM"
_FILE_HEADER = 14
_CORE, _INFO = 12, 40
_START_AT, _COLOUR_BITS = 10, 24
_DEPTHS = (1, 2, 4, 8, 16, 24, 32)
_RGB, _RLE8, _RLE4, _BIT_FIELDS, _ALPHA_BIT_FIELDS = 0, 1, 2, 3, 6
# Uncompressed rows may lack padding. A run of 255 pixels takes two bytes, and skipped pixels take none.
_PLAIN_RATIO, _RUNS_RATIO = 4, 10_000


def check_bmp(data: memoryview) -> Declared:
    """Return the values that a BMP's header declares; raise CorruptImageError for impossible ones."""
    check(len(data) >= _FILE_HEADER + _CORE, "BMP: it is cut short within its header")
    declared = check_bitmap(data[_FILE_HEADER:], len(data), "BMP")
    bitmap = _Bitmap.read(data[_FILE_HEADER:])
    if not bitmap.has_runs:
        (start,) = struct.unpack_from("<I", data, _START_AT)
        end = start + bitmap.span
        # nvImageCodec would decode shifted rows.
        check(end <= len(data), f"BMP: its pixels end at byte {end}, but the file has {len(data)} bytes")
    return declared


class _Bitmap(NamedTuple):
    """The fields of a bitmap header that say how pixels are stored.

    Attributes:
        size: the size of the header, in bytes.
        height: the number of rows; negative if they are stored from the top.
        bits: the number of bits of a pixel.
    """

    size: int
    width: int
    height: int
    planes: int
    bits: int
    compression: int

    @classmethod
    def read(cls, bitmap: memoryview) -> _Bitmap:
        """Read a header, all of which is there."""
        (size,) = struct.unpack_from("<I", bitmap)
        if size == _CORE:
            width, height, planes, bits = struct.unpack_from("<HHHH", bitmap, 4)
            return cls(size, width, height, planes, bits, _RGB)
        return cls(size, *struct.unpack_from("<iiHHI", bitmap, 4))

    @property
    def has_runs(self) -> bool:
        """Whether runs of pixels are stored."""
        return self.compression in (_RLE8, _RLE4)

    @property
    def row_bytes(self) -> int:
        """The size of a row with its padding, in bytes."""
        return (self.width * self.bits + 31) // 32 * 4

    @property
    def span(self) -> int:
        """The number of bytes from the first pixel to the end of the last one, unless runs are stored: the last row may lack its padding."""
        return self.row_bytes * (abs(self.height) - 1) + -(-self.width * self.bits // 8)


def check_bitmap(bitmap: memoryview, available: int, kind: str) -> Declared:
    """Return the values that a bitmap header declares, in a file of ``available`` bytes; raise CorruptImageError for impossible ones."""
    check(len(bitmap) >= _CORE, f"{kind}: it is cut short within its header")
    (size,) = struct.unpack_from("<I", bitmap)
    check(size == _CORE or (_INFO <= size <= 124 and len(bitmap) >= _INFO), f"{kind}: its header is of {size} bytes")
    found = _Bitmap.read(bitmap)
    width, height, bits, compression = found.width, abs(found.height), found.bits, found.compression
    check(width > 0 and height > 0, f"{kind}: its size is {height}x{width}")
    check(bits in _DEPTHS, f"{kind}: its pixels have {bits} bits")
    check(
        compression in (_RGB, _RLE8, _RLE4, _BIT_FIELDS, _ALPHA_BIT_FIELDS),
        f"{kind}: its compression is of the unknown kind {compression}",
    )
    stored = Declared(height, width, 1, bits)
    check_density(stored, available, _RUNS_RATIO if found.has_runs else _PLAIN_RATIO, kind)
    return Declared(height, width, {16: 3, 24: 3, 32: 4}.get(bits, 3))


def plain_rows(encoded: np.ndarray) -> np.ndarray | None:
    """Return a view of the rows of an uncompressed 24-bit BMP, from the top: uint8 of shape (H, W, 3) in BGR; None for
    other files.

    Args:
        encoded: a file with a valid header.
    """
    data = encoded.data
    if len(data) < _FILE_HEADER + _INFO:
        return None
    (start,) = struct.unpack_from("<I", data, _START_AT)
    bitmap = _Bitmap.read(data[_FILE_HEADER:])
    if bitmap.size < _INFO or (bitmap.planes, bitmap.bits, bitmap.compression) != (1, _COLOUR_BITS, _RGB):
        return None
    if start < _FILE_HEADER + bitmap.size or start + bitmap.span > len(data):
        return None
    strides = bitmap.row_bytes, 3, 1
    rows = np.ndarray((abs(bitmap.height), bitmap.width, 3), np.uint8, encoded, start, strides)
    return rows[::-1] if bitmap.height > 0 else rows
