"""Checks videos: whether the container is supported, and the frame size in its header.

Sources: ISO/IEC 14496-12, 4.2 (boxes), 8.5.2 (stsd) and 12.1.3 (visual sample entries); RFC 8794 (EBML), section 4 to 6, and
RFC 9559 (Matroska), section 5.1.4; Microsoft, AVI RIFF File Reference (avih); Google, IVF (libvpx, ivfdec.c).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from penstock.errors import PenstockError

CONTAINERS = (
    *(
        "mov",
        "matroska",
        "avi",
        "mpegts",
        "mpeg",
        "mpegvideo",
        "flv",
        "ogg",
        "gif",
        "apng",
        "ivf",
        "asf",
        "h264",
        "hevc",
    ),
    *("vvc", "av1", "obu", "m4v", "mjpeg", "rm", "nut", "mxf", "dv", "vc1", "yuv4mpegpipe"),
)
"""FFmpeg's names of supported containers: common ones that cannot refer to other files."""


class CorruptVideoError(PenstockError, ValueError):
    """The bytes are not a video, or the video is truncated or damaged."""


def check_video(data: memoryview) -> tuple[int, int] | None:
    """Return the height and width in a video's header; None if the size is known only when the video is opened."""
    start = bytes(data[:12])
    if start[4:8] in (b"ftyp", b"moov", b"mdat", b"free", b"wide", b"skip"):
        return _mp4_size(data)
    if start[:4] == b"RIFF" and start[8:] == b"AVI ":
        return _avi_size(data)
    if start[:4] == b"DKIF":
        return _ivf_size(data)
    if start[:4] == _EBML:
        return _matroska_size(data)
    return None


def _largest(sizes: Iterator[tuple[int, int]]) -> tuple[int, int] | None:
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


# -- MP4 and MOV -------------------------------------------------------------------------------------------------------

_MAX_BOXES = 10_000
_TO_ENTRIES = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd")
# Entries follow the version, the flags and the count. In an entry, the size is at this distance after the box header.
_ENTRIES_AT, _SIZE_AT = 8, 24


def _mp4_size(data: memoryview) -> tuple[int, int] | None:
    return _largest(_entries(data, _TO_ENTRIES))


def _entries(data: memoryview, path: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
    """Yield the sizes in the visual sample entries of all boxes with a path."""
    for name, contents in _boxes(data):
        if name != path[0]:
            continue
        if len(path) > 1:
            yield from _entries(contents, path[1:])
            continue
        for _, entry in _boxes(contents[_ENTRIES_AT:]):
            if len(entry) >= _SIZE_AT + 4:
                width, height = struct.unpack_from(">HH", entry, _SIZE_AT)
                yield height, width


def _boxes(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield consecutive boxes until one is not valid."""
    position = 0
    for _ in range(_MAX_BOXES):
        if position + 8 > len(data):
            return
        length, name = struct.unpack_from(">I4s", data, position)
        start = position + 8
        if length == 1 and position + 16 <= len(data):
            (length,) = struct.unpack_from(">Q", data, start)
            start += 8
        end = position + length if length else len(data)
        if end < start:
            return
        yield name, data[start:end]
        position = end


# -- AVI and IVF -------------------------------------------------------------------------------------------------------


def _avi_size(data: memoryview) -> tuple[int, int] | None:
    # The main header must come first in the first list.
    if len(data) < 72 or bytes(data[24:28]) != b"avih":
        return None
    width, height = struct.unpack_from("<II", data, 64)
    return height, width


def _ivf_size(data: memoryview) -> tuple[int, int] | None:
    if len(data) < 16:
        return None
    width, height = struct.unpack_from("<HH", data, 12)
    return height, width


# -- Matroska and WebM -------------------------------------------------------------------------------------------------

_EBML = b"\x1a\x45\xdf\xa3"
_TO_SIZES = (0x18538067, 0x1654AE6B, 0xAE, 0xE0)  # Segment, Tracks, TrackEntry, Video
_PIXEL_WIDTH, _PIXEL_HEIGHT = 0xB0, 0xBA
_MAX_ELEMENTS = 10_000


def _matroska_size(data: memoryview) -> tuple[int, int] | None:
    return _largest(_track_sizes(data, _TO_SIZES))


def _track_sizes(data: memoryview, path: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    for identifier, contents in _elements(data):
        if identifier != path[0]:
            continue
        if len(path) > 1:
            yield from _track_sizes(contents, path[1:])
            continue
        sides = {number: int.from_bytes(value[:8], "big") for number, value in _elements(contents)}
        yield sides.get(_PIXEL_HEIGHT, 0), sides.get(_PIXEL_WIDTH, 0)


def _elements(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield consecutive elements until one is not valid."""
    position = 0
    for _ in range(_MAX_ELEMENTS):
        if position >= len(data):
            return
        identifier, position = _variable(data, position, keep_marker=True)
        if position >= len(data):
            return
        width = 9 - data[position].bit_length()
        length, position = _variable(data, position, keep_marker=False)
        # A length of all ones means up to the end.
        unknown = length == (1 << 7 * width) - 1
        end = len(data) if unknown else position + length
        yield identifier, data[position:end]
        position = end


def _variable(data: memoryview, position: int, keep_marker: bool) -> tuple[int, int]:
    """Return a number of variable length, and the position after it; the leading zeros of its first byte encode the length."""
    width = 9 - data[position].bit_length()
    value = int.from_bytes(data[position : position + width], "big")
    if not keep_marker:
        value &= (1 << 7 * width) - 1
    return value, position + width
