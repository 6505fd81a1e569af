"""Checks the headers of GIF files: the sizes of the screen and of the first image.

Source: CompuServe, Graphics Interchange Format, version 89a, sections 17 to 22.
"""

from __future__ import annotations

import struct

from penstock.kernels.codecs.headers.declared import Declared, check, check_density

SIGNATURES = (b"GIF87a", b"GIF89a")
_SCREEN = 13
_EXTENSION, _IMAGE = 0x21, 0x2C
_MAX_BLOCKS = 10_000
# A 12-bit code of LZW encodes at most 4096 pixels.
_LZW_RATIO = 2731


def check_gif(data: memoryview) -> Declared:
    """Return the values that a GIF's header declares; raise CorruptImageError for impossible ones."""
    check(len(data) >= _SCREEN, "GIF: it is cut short within its header")
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    position = _SCREEN + _colours(flags)
    for _ in range(_MAX_BLOCKS):
        check(position < len(data), "GIF: it is cut short before its first image")
        if data[position] == _IMAGE:
            check(position + 10 <= len(data), "GIF: it is cut short within its first image")
            left, top, columns, rows = struct.unpack_from("<HHHH", data, position + 1)
            check(columns > 0 and rows > 0, f"GIF: its first image is of {rows}x{columns} pixels")
            # Decoders enlarge a screen that is smaller than the image.
            declared = Declared(max(height, top + rows), max(width, left + columns))
            check_density(Declared(rows, columns, 1), len(data), _LZW_RATIO, "GIF")
            return declared
        check(data[position] == _EXTENSION, "GIF: an image or an extension is missing")
        position = _skip_blocks(data, position + 2)
    raise AssertionError("unreachable")


def _colours(flags: int) -> int:
    """Return the number of bytes of the colour table that the flags declare."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _skip_blocks(data: memoryview, position: int) -> int:
    """Return the position after a sequence of sub-blocks."""
    while position < len(data) and data[position]:
        position += data[position] + 1
    return position + 1
