"""Checks PNG files: the header chunk, and that all chunks lie within the file.

Source: W3C, Portable Network Graphics (Third Edition), sections 5.2, 5.3, 11.2.1 (IHDR), 11.3.6 (animation) and 13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.headers.declared import Declared, check, check_density
from penstock.kernels.codecs.image_description import ImageHeader

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">I4sIIBBBBB")
_MAX_EXTENT = (1 << 31) - 1
# The number of channels and the allowed bit depths of each colour type.
_KINDS = {0: (1, (1, 2, 4, 8, 16)), 2: (3, (8, 16)), 3: (1, (1, 2, 4, 8)), 4: (2, (8, 16)), 6: (4, (8, 16))}
_PALETTE, _COLOURED = 3, (2, 6)
_BITS_AT, _BITS = 24, 8
# The largest compression ratio of deflate (RFC 1951): 258 bytes in two bits.
_DEFLATE_RATIO = 1032
_CHUNK = struct.Struct(">I4s").unpack_from
# The sizes of the length and name before a chunk's data, of both and the checksum together, and of the checksum.
_CHUNK_START, _CHUNK_OVERHEAD, _CHECKSUM = 8, 12, 4
_END, _DATA, _FRAME = b"IEND", b"IDAT", b"fcTL"
# Chunks that affect neither size, channels nor orientation.
_PLAIN = frozenset((_DATA, b"tEXt", b"gAMA", b"pHYs", b"tIME", _END))
_ANIMATION = frozenset((b"acTL", _FRAME, b"fdAT"))


def check_png(data: memoryview) -> Declared:
    """Return the values that a PNG's header declares; raise CorruptImageError for impossible ones."""
    check(len(data) >= len(SIGNATURE) + _HEADER.size, "PNG: it is cut short within its header")
    length, name, width, height, bits, colour, compression, filters, interlace = _HEADER.unpack_from(
        data, len(SIGNATURE)
    )
    check(name == b"IHDR" and length == 13, "PNG: it does not begin with a header of 13 bytes")
    check(0 < width <= _MAX_EXTENT and 0 < height <= _MAX_EXTENT, f"PNG: its size is {height}x{width}")
    channels, depths = _KINDS.get(colour, (0, ()))
    check(bits in depths, f"PNG: the colour type {colour} cannot have {bits} bits")
    check(compression == 0 and filters == 0 and interlace < 2, "PNG: its compression, filter or interlacing is unknown")
    declared = Declared(height, width, channels, bits)
    check_density(declared, len(data), _DEFLATE_RATIO, "PNG")
    names, end = [], 0
    for name, start, end in _chunks(data):
        # The last chunk is empty, and decoders do not need the checksum after it.
        needed = end - _CHECKSUM if name == _END else end
        check(needed <= len(data), f"PNG: its chunk {name!r} at byte {start} reaches beyond its {len(data)} bytes")
        names.append(name)
    if (
        bits == _BITS
        and colour != _PALETTE
        and names[-1:] == [_END]
        and end == len(data)
        and _PLAIN.issuperset(names[1:])
    ):
        return declared._replace(is_plain=True)
    return declared._replace(crash_prone=not _is_first_frame(names) and not _ANIMATION.isdisjoint(names))


def without_animation(encoded: np.ndarray) -> np.ndarray:
    """Return a PNG without its animation chunks, provided that what remains is the first frame, which is what decoders return.

    nvImageCodec 0.9 crashes on damaged animations.
    """
    chunks = list(_chunks(encoded.data))
    names = [name for name, _, _ in chunks]
    if _ANIMATION.isdisjoint(names) or not _is_first_frame(names):
        return encoded
    kept = [encoded[start:end] for name, start, end in chunks if name not in _ANIMATION]
    return np.concatenate([encoded[: len(SIGNATURE)], *kept])


def value_bits(encoded: np.ndarray) -> int:
    """Return the number of bits of decoded values of a PNG: 8 or 16. The header must be valid."""
    return max(int(encoded[_BITS_AT]), _BITS)


def decodes_alike(encoded: np.ndarray, header: ImageHeader, output_type: DALIImageType) -> bool:
    """Return whether the compiled core decodes a file to the same pixels as the reference decoders.

    Args:
        encoded: a file with a valid header.
        header: the file's header.
        output_type: the colour space to which the file is decoded.
    """
    if not header.by_pillow:
        return True
    bits, colour = int(encoded[_BITS_AT]), int(encoded[_BITS_AT + 1])
    # Pillow truncates 16-bit values to 8 bits, and it computes grey differently from the core.
    return bits == _BITS and colour != _PALETTE and (output_type != DALIImageType.GRAY or colour not in _COLOURED)


def _is_first_frame(names: list[bytes]) -> bool:
    """Return whether the image is also the first frame of an animation: a frame control chunk precedes the image data."""
    return next((name for name in names if name in (_FRAME, _DATA)), _DATA) == _FRAME


def _chunks(data: memoryview) -> Iterator[tuple[bytes, int, int]]:
    """Yield each chunk's name and the positions of its start and end."""
    position, size = len(SIGNATURE), len(data)
    # Chunks must lie within the file: libraries allocate as much as a length declares before they look for the data.
    while position + _CHUNK_START <= size:
        length, name = _CHUNK(data, position)
        end = position + _CHUNK_OVERHEAD + length
        yield name, position, end
        if name == _END:
            return
        position = end
