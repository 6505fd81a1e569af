"""Checks the chunks of WebP files.

Source: RFC 9649 (WebP), sections 2.3 to 2.7 and 3.4; RFC 6386 (VP8), section 9.1.
"""

from __future__ import annotations

import struct

import numpy as np

from penstock.kernels.codecs.headers.declared import Declared, check

SIGNATURE = b"RIFF"
KIND = b"WEBP"
_FIRST_CHUNK = 12
_CHUNK = struct.Struct("<4sI").unpack_from
_VP8_START = b"\x9d\x01\x2a"
_VP8L_SIGNATURE = 0x2F
_ANIMATION = 0x02


def check_webp(data: memoryview) -> Declared:
    """Return the values that a WebP's header declares; raise CorruptImageError for impossible ones."""
    check(len(data) >= _FIRST_CHUNK + 8 + 10, "WebP: it is cut short within its header")
    chunk, body = bytes(data[_FIRST_CHUNK : _FIRST_CHUNK + 4]), data[_FIRST_CHUNK + 8 :]
    if chunk == b"VP8 ":
        check(bytes(body[3:6]) == _VP8_START and not body[0] & 1, "WebP: its data do not begin with a key frame")
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", body, 6))
        channels = 3
    elif chunk == b"VP8L":
        check(body[0] == _VP8L_SIGNATURE, "WebP: its lossless data lack their signature")
        (packed,) = struct.unpack_from("<I", body, 1)
        check(packed >> 29 == 0, f"WebP: its lossless data are of version {packed >> 29}")
        width, height, channels = (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1, 4
    else:
        check(chunk == b"VP8X", f"WebP: it begins with a chunk {chunk!r}")
        width, height = (int.from_bytes(body[at : at + 3], "little") + 1 for at in (4, 7))
        check(width * height < 1 << 32, f"WebP: its size is {height}x{width}")
        channels = 4
    check(width > 0 and height > 0, f"WebP: its size is {height}x{width}")
    _check_chunks(data)
    return Declared(height, width, channels)


def is_animated(encoded: np.ndarray) -> bool:
    """Return whether the header of a WebP says that it is an animation; the header must be valid."""
    return bytes(encoded[_FIRST_CHUNK : _FIRST_CHUNK + 4]) == b"VP8X" and bool(encoded[_FIRST_CHUNK + 8] & _ANIMATION)


def _check_chunks(data: memoryview) -> None:
    """Raise CorruptImageError if a chunk extends beyond the file, as libraries would allocate its declared length.

    Libraries read on after the container's end, so chunks there are checked as well; zero padding is ignored.
    """
    size = len(data)
    position = _FIRST_CHUNK
    while position + 8 <= size:
        name, length = _CHUNK(data, position)
        check(
            position + 8 + length <= size,
            f"WebP: its chunk {name!r} at byte {position} reaches beyond its {size} bytes",
        )
        position += 8 + length + length % 2
