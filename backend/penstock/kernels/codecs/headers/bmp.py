"""Checks the headers of BMP files: the file header and the bitmap header.

Source: Microsoft, Windows GDI: BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER, BITMAPV5HEADER.
"""

from __future__ import annotations

import struct

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
    # nvImageCodec would decode shifted rows.
    end = _pixel_end(data)
    check(end <= len(data), f"BMP: its pixels end at byte {end}, but the file has {len(data)} bytes")
    return declared


def _pixel_end(data: memoryview) -> int:
    """Return where the last pixel of a file ends, whose header is valid; 0 if pixels are compressed. The last row may lack its padding."""
    (start,) = struct.unpack_from("<I", data, _START_AT)
    (size,) = struct.unpack_from("<I", data, _FILE_HEADER)
    compression = _RGB
    if size == _CORE:
        width, height, _, bits = struct.unpack_from("<HHHH", data, _FILE_HEADER + 4)
    else:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, _FILE_HEADER + 4)
    if compression in (_RLE8, _RLE4):
        return 0
    end: int = start + _row_bytes(width, bits) * (abs(height) - 1) + -(-width * bits // 8)
    return end


def _row_bytes(width: int, bits: int) -> int:
    """Return the size of a row with its padding, in bytes."""
    return (width * bits + 31) // 32 * 4


def check_bitmap(bitmap: memoryview, available: int, kind: str) -> Declared:
    """Return the values that a bitmap header declares, in a file of ``available`` bytes; raise CorruptImageError for impossible ones."""
    check(len(bitmap) >= _CORE, f"{kind}: it is cut short within its header")
    (size,) = struct.unpack_from("<I", bitmap)
    check(size == _CORE or (_INFO <= size <= 124 and len(bitmap) >= _INFO), f"{kind}: its header is of {size} bytes")
    compression = _RGB
    if size == _CORE:
        width, height, _, bits = struct.unpack_from("<HHHH", bitmap, 4)
    else:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", bitmap, 4)
    height = abs(height)  # negative if rows are stored from the top
    check(width > 0 and height > 0, f"{kind}: its size is {height}x{width}")
    check(bits in _DEPTHS, f"{kind}: its pixels have {bits} bits")
    check(
        compression in (_RGB, _RLE8, _RLE4, _BIT_FIELDS, _ALPHA_BIT_FIELDS),
        f"{kind}: its compression is of the unknown kind {compression}",
    )
    stored = Declared(height, width, 1, bits)
    runs = compression in (_RLE8, _RLE4)
    check_density(stored, available, _RUNS_RATIO if runs else _PLAIN_RATIO, kind)
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
    size, width, height, planes, bits, compression = struct.unpack_from("<IiiHHI", data, _FILE_HEADER)
    if size < _INFO or (planes, bits, compression) != (1, _COLOUR_BITS, _RGB):
        return None
    if start < _FILE_HEADER + size or _pixel_end(data) > len(data):
        return None
    strides = _row_bytes(width, bits), 3, 1
    rows = np.ndarray((abs(height), width, 3), np.uint8, encoded, start, strides)
    return rows[::-1] if height > 0 else rows
