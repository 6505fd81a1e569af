"""TIFF and BigTIFF: the first directory.

Source: Adobe, TIFF Revision 6.0 (1992), sections 2, 8 and 15; AWare Systems, The BigTIFF File Format Proposal.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.kernels.codecs.headers.declared import Declared, check, check_density
from penstock.kernels.codecs.image_errors import CorruptImageError

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_WIDTH, _HEIGHT, _BITS, _SAMPLES, _ROWS_PER_STRIP, _PLANES = 256, 257, 258, 277, 278, 284
_TILE_WIDTH, _TILE_HEIGHT, _EXTRA_SAMPLES = 322, 323, 338
_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_NUMBERS = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q"}
_MAX_ENTRIES, _MAX_SAMPLES, _MAX_BITS = 4096, 64, 64
_LARGEST = (1 << 31) - 1
_DENSEST = 10_000


class _Layout(NamedTuple):
    """The layout of one of the two kinds of directories."""

    order: str
    number: str
    offset: str
    entry: int


def check_tiff(data: memoryview) -> Declared:
    """The header of a TIFF's first image; raises CorruptImageError for impossible values."""
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
    """For each tag, the type, number and position of its values."""
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
    check(0 < width <= _LARGEST and 0 < height <= _LARGEST, f"TIFF: its size is {height}x{width}")
    samples, bits = numbers(_SAMPLES, 1)[0], max(numbers(_BITS, 1))
    check(0 < samples <= _MAX_SAMPLES, f"TIFF: its pixels have {samples} samples")
    check(0 < bits <= _MAX_BITS, f"TIFF: its samples have {bits} bits")
    check(numbers(_ROWS_PER_STRIP, 1)[0] > 0, "TIFF: its strips have no rows")
    planes = numbers(_PLANES, 1)[0]
    check(planes in (1, 2), "TIFF: its planes are arranged in an unknown way")
    planar = planes == 2 and samples > 1
    unvetted = bits not in _VETTED_BITS or _has_unvetted_samples(samples, bits, planar, numbers(_EXTRA_SAMPLES, 1)[0])
    if unvetted and planar and bits != 8:
        # nvImageCodec would return pixels that the file does not hold.
        raise CorruptImageError(f"Planes of {bits} bits in a TIFF are not supported; save it with interleaved channels")
    declared = Declared(height, width, samples, bits, crash_prone=unvetted)
    check_density(declared, len(data), _DENSEST, "TIFF")
    if _TILE_WIDTH in tags or _TILE_HEIGHT in tags:
        tile = _checked_tile(numbers(_TILE_WIDTH, 0)[0], numbers(_TILE_HEIGHT, 0)[0], declared, len(data))
        return declared._replace(tile=tile.size)
    return declared


# Kinds that Pillow can't read, or not as stored, so that nothing vets their data before libtiff decodes them.
_VETTED_BITS = (1, 2, 4, 8, 16, 32, 64)


def _has_unvetted_samples(samples: int, bits: int, planar: bool, extra: int) -> bool:
    """Whether Pillow can't read such pixels; ``extra``: the meaning of the first extra sample (0: unspecified)."""
    if samples == 1:
        return False
    return samples not in (3, 4) or bits < 8 or (samples == 4 and (planar or not extra))


def _checked_tile(width: int, height: int, image: Declared, available: int) -> Declared:
    check(0 < width <= _LARGEST and 0 < height <= _LARGEST, f"TIFF: its tiles are of {height}x{width} pixels")
    tile = image._replace(height=height, width=width)
    check_density(tile, available, _DENSEST, "TIFF")
    return tile
