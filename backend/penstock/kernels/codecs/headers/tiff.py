"""Checks the first directory of TIFF and BigTIFF files.

Source: Adobe, TIFF Revision 6.0 (1992), sections 2, 8 and 15; AWare Systems, The BigTIFF File Format Proposal.
"""

from __future__ import annotations

import itertools
import struct
from typing import NamedTuple

import numpy as np

from penstock.kernels.codecs.headers.declared import Declared, check, check_density
from penstock.kernels.codecs.image_errors import CorruptImageError

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_WIDTH, _HEIGHT, _BITS, _SAMPLES, _ROWS_PER_STRIP, _PLANES = 256, 257, 258, 277, 278, 284
_TILE_WIDTH, _TILE_HEIGHT, _EXTRA_SAMPLES = 322, 323, 338
_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_NUMBERS = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q"}
_MAX_ENTRIES, _MAX_SAMPLES, _MAX_BITS = 4096, 64, 64
_MAX_EXTENT = (1 << 31) - 1
_MAX_PIXELS_PER_BYTE = 10_000


class _Layout(NamedTuple):
    """The layout of directories, in TIFF or in BigTIFF."""

    order: str
    number: str
    offset: str
    entry: int


def check_tiff(data: memoryview) -> Declared:
    """Return the values that a TIFF declares for its first image; raise CorruptImageError for impossible ones."""
    order = "<" if bytes(data[:2]) == b"II" else ">"
    big = data[2 if order == "<" else 3] == ord("+")
    layout = _Layout(order, "Q", "Q", 20) if big else _Layout(order, "H", "I", 12)
    try:
        tags = _read_directory(data, layout, 8 if big else 4)
        return _check_tags(data, layout, tags)
    except (struct.error, OverflowError):
        check(False, "TIFF: it is cut short within its header")
        raise AssertionError("unreachable") from None


def _read_directory(data: memoryview, layout: _Layout, pointer: int) -> dict[int, tuple[int, int, int]]:
    """Return, for each tag, the type, the number and the position of its values."""
    (directory,) = struct.unpack_from(layout.order + layout.offset, data, pointer)
    (count,) = struct.unpack_from(layout.order + layout.number, data, directory)
    check(0 < count <= _MAX_ENTRIES, f"TIFF: its directory has {count} entries")
    first = directory + struct.calcsize(layout.order + layout.number)
    tags: dict[int, tuple[int, int, int]] = {}
    for entry in range(first, first + count * layout.entry, layout.entry):
        tag, kind, number = struct.unpack_from(layout.order + "HH" + layout.offset, data, entry)
        room = struct.calcsize(layout.order + layout.offset)
        place = entry + layout.entry - room
        if _TYPE_BYTES.get(kind, 0) * number > room:
            (place,) = struct.unpack_from(layout.order + layout.offset, data, place)
        tags.setdefault(tag, (kind, number, place))
    return tags


def _check_tags(data: memoryview, layout: _Layout, tags: dict[int, tuple[int, int, int]]) -> Declared:
    def numbers(tag: int, default: int) -> list[int]:
        kind, count, place = tags.get(tag, (0, 0, 0))
        if not count:
            return [default]
        check(kind in _NUMBERS and count <= _MAX_SAMPLES, f"TIFF: its tag {tag} holds {count} values of type {kind}")
        return list(struct.unpack_from(f"{layout.order}{count}{_NUMBERS[kind]}", data, place))

    width, height = numbers(_WIDTH, 0)[0], numbers(_HEIGHT, 0)[0]
    check(0 < width <= _MAX_EXTENT and 0 < height <= _MAX_EXTENT, f"TIFF: its size is {height}x{width}")
    samples, bits = numbers(_SAMPLES, 1)[0], max(numbers(_BITS, 1))
    check(0 < samples <= _MAX_SAMPLES, f"TIFF: its pixels have {samples} samples")
    check(0 < bits <= _MAX_BITS, f"TIFF: its samples have {bits} bits")
    check(numbers(_ROWS_PER_STRIP, 1)[0] > 0, "TIFF: its strips have no rows")
    planes = numbers(_PLANES, 1)[0]
    check(planes in (1, 2), "TIFF: its planes are arranged in an unknown way")
    planar = planes == 2 and samples > 1
    unvetted = bits not in _VETTED_BITS or _has_unvetted_samples(samples, bits, planar, numbers(_EXTRA_SAMPLES, 1)[0])
    if unvetted and planar and bits != 8:
        # nvImageCodec would return pixels that are not in the file.
        raise CorruptImageError(
            f"Planes of {bits} bits in a TIFF are not supported; save the image with interleaved channels"
        )
    declared = Declared(height, width, samples, bits, crash_prone=unvetted)
    check_density(declared, len(data), _MAX_PIXELS_PER_BYTE, "TIFF")
    if _TILE_WIDTH in tags or _TILE_HEIGHT in tags:
        tile = _checked_tile(numbers(_TILE_WIDTH, 0)[0], numbers(_TILE_HEIGHT, 0)[0], declared, len(data))
        return declared._replace(tile=tile.size)
    return declared


# The bit depths that Pillow reads as stored. libtiff would decode files of other depths without any check of their data.
_VETTED_BITS = (1, 2, 4, 8, 16, 32, 64)


# The tags that a plain file may have, with the only values allowed. Tags whose values do not matter (such as description,
# software, resolution and time) have no values here.
_COMPRESSION, _PHOTOMETRIC, _STRIP_OFFSETS, _STRIP_BYTES = 259, 262, 273, 279
_PLAIN_VALUES: dict[int, list[int]] = {
    254: [0],  # full-resolution image
    _BITS: [8, 8, 8],
    _COMPRESSION: [1],
    _PHOTOMETRIC: [2],
    266: [1],  # first pixel in the highest bits
    274: [1],  # upright
    _SAMPLES: [3],
    _PLANES: [1],
    339: [1, 1, 1],  # unsigned integers
}
_PLAIN_REQUIRED = frozenset(
    (_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _STRIP_OFFSETS, _SAMPLES, _STRIP_BYTES)
)
_PLAIN_TAGS = _PLAIN_REQUIRED | _PLAIN_VALUES.keys() | {_ROWS_PER_STRIP, 270, 282, 283, 296, 305, 306}


def plain_rows(encoded: np.ndarray) -> np.ndarray | None:
    """Return a view of the rows of an uncompressed 8-bit RGB TIFF with consecutive strips: uint8 of shape (H, W, 3); None for
    other files.

    Args:
        encoded: a file with a valid header.
    """
    data = encoded.data
    if bytes(data[:4]) not in SIGNATURES[:2]:
        return None
    layout = _Layout("<" if data[0] == ord("I") else ">", "H", "I", 12)
    try:
        tags = _read_directory(data, layout, 4)
        if not _PLAIN_REQUIRED <= tags.keys() <= _PLAIN_TAGS or not _ends_after_directory(data, layout):
            return None
        if any(_values(data, layout, tags[tag]) != values for tag, values in _PLAIN_VALUES.items() if tag in tags):
            return None
        height, width = _values(data, layout, tags[_HEIGHT]), _values(data, layout, tags[_WIDTH])
        starts, sizes = _values(data, layout, tags[_STRIP_OFFSETS]), _values(data, layout, tags[_STRIP_BYTES])
        rows = _values(data, layout, tags[_ROWS_PER_STRIP]) if _ROWS_PER_STRIP in tags else height
    except struct.error:
        return None
    if not len(height) == len(width) == len(rows) == 1 or not height[0] or not width[0] or not rows[0]:
        return None
    row_bytes = 3 * width[0]
    if row_bytes * height[0] > len(data) or len(starts) != len(sizes):
        return None
    bounds = [*range(0, row_bytes * height[0], row_bytes * min(rows[0], height[0])), row_bytes * height[0]]
    contiguous = [(starts[0] + begin, end - begin) for begin, end in itertools.pairwise(bounds)] if starts else []
    if not starts or list(zip(starts, sizes)) != contiguous:
        return None
    end = starts[0] + sum(sizes)
    return encoded[starts[0] : end].reshape(height[0], width[0], 3) if end <= len(data) else None


def _values(data: memoryview, layout: _Layout, entry: tuple[int, int, int]) -> list[int]:
    """Return the values of a tag; an empty list if they are not integers."""
    kind, count, place = entry
    if kind not in _NUMBERS or count > len(data):
        return []
    return list(struct.unpack_from(f"{layout.order}{count}{_NUMBERS[kind]}", data, place))


def _ends_after_directory(data: memoryview, layout: _Layout) -> bool:
    """Return whether the file has only one directory, and thus one image."""
    (directory,) = struct.unpack_from(layout.order + layout.offset, data, 4)
    (count,) = struct.unpack_from(layout.order + layout.number, data, directory)
    (following,) = struct.unpack_from(layout.order + layout.offset, data, directory + 2 + count * layout.entry)
    return bool(following == 0)


def _has_unvetted_samples(samples: int, bits: int, planar: bool, extra: int) -> bool:
    """Return whether Pillow cannot read pixels of this kind; ``extra``: the meaning of the first extra sample (0: unspecified)."""
    if samples == 1:
        return False
    return samples not in (3, 4) or bits < 8 or (samples == 4 and (planar or not extra))


def _checked_tile(width: int, height: int, image: Declared, available: int) -> Declared:
    check(0 < width <= _MAX_EXTENT and 0 < height <= _MAX_EXTENT, f"TIFF: its tiles are of {height}x{width} pixels")
    tile = image._replace(height=height, width=width)
    check_density(tile, available, _MAX_PIXELS_PER_BYTE, "TIFF")
    return tile
