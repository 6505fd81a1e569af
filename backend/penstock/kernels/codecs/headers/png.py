"""PNG: the header chunk.

Source: W3C, Portable Network Graphics (Third Edition), sections 5.2, 11.2.1 (IHDR) and 13.
"""

from __future__ import annotations

import struct

from penstock.kernels.codecs.headers.announced import Announced, check, check_density

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">I4sIIBBBBB")
_LARGEST = (1 << 31) - 1
# By colour type: channels, and the bits that each may have.
_KINDS = {0: (1, (1, 2, 4, 8, 16)), 2: (3, (8, 16)), 3: (1, (1, 2, 4, 8)), 4: (2, (8, 16)), 6: (4, (8, 16))}
# RFC 1951: 258 bytes in two bits.
_DEFLATE_RATIO = 1032


def check_png(data: memoryview) -> Announced:
    """What a PNG announces; raises CorruptImageError where that cannot be."""
    check(len(data) >= len(SIGNATURE) + _HEADER.size, "PNG: it is cut short within its header")
    length, name, width, height, bits, colour, compression, filters, interlace = _HEADER.unpack_from(
        data, len(SIGNATURE)
    )
    check(name == b"IHDR" and length == 13, "PNG: it does not begin with a header of 13 bytes")
    check(0 < width <= _LARGEST and 0 < height <= _LARGEST, f"PNG: its size is {height}x{width}")
    channels, depths = _KINDS.get(colour, (0, ()))
    check(bits in depths, f"PNG: there are no {bits} bits in the colour type {colour}")
    check(compression == 0 and filters == 0 and interlace < 2, "PNG: its compression, filter or interlacing is unknown")
    announced = Announced(height, width, channels, bits)
    check_density(announced, len(data), _DEFLATE_RATIO, "PNG")
    return announced
