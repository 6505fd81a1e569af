"""Checks the headers of JPEG 2000 files: the boxes of JP2 files, and the main header of a codestream.

Source: ITU-T T.800 (ISO/IEC 15444-1), annexes A (codestream syntax: SIZ, COD, COC) and I (JP2 boxes).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from penstock.kernels.codecs.headers.declared import Declared, check, check_density

BOX_SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
CODESTREAM_SIGNATURE = b"\xff\x4f\xff\x51"
_SIZ = struct.Struct(">HHIIIIIIIIH")
_SOT, _COD, _COC, _SIZ_MARKER = 0xFF90, 0xFF52, 0xFF53, 0xFF51
_MAX_COMPONENTS, _MAX_TILES = 16384, 65535
_MAX_BITS = 38
# The smallest tile consists of two markers, the first with parameters. Decoders reserve kilobytes for each tile.
_MIN_TILE_BYTES, _FEW_TILES = 14, 64
_MAX_SEGMENTS, _MAX_BOXES = 4096, 256
_MAX_LEVELS, _MAX_PROGRESSION = 32, 4
# The largest exponent of a side of a code-block, and the largest sum of the exponents of both sides; exponents are reduced by 2.
_MAX_SIDE, _MAX_AREA = 8, 8
_MAX_PIXELS_PER_BYTE = 10_000


def check_jpeg2000(data: memoryview) -> Declared:
    """Return the values that a JPEG 2000 file or codestream declares; raise CorruptImageError for impossible ones."""
    if bytes(data[:4]) == CODESTREAM_SIGNATURE:
        return _check_codestream(data)
    header, codestream = _find_boxes(data)
    declared = _check_codestream(codestream)
    _check_jp2_header(header, declared)
    return declared


# -- codestream ------------------------------------------------------------------------------------------------------


def _check_codestream(data: memoryview) -> Declared:
    check(bytes(data[:4]) == CODESTREAM_SIGNATURE, "JPEG 2000: its codestream does not begin with an image's size")
    check(len(data) >= 4 + _SIZ.size, "JPEG 2000: it is cut short within its header")
    length, _, right, bottom, left, top, *tiles, components = _SIZ.unpack_from(data, 4)
    check(0 < components <= _MAX_COMPONENTS, f"JPEG 2000: it has {components} components")
    check(
        length == _SIZ.size + 3 * components and len(data) >= 4 + length,
        f"JPEG 2000: its size is declared in {length} bytes for {components} components",
    )
    check(
        left < right < 1 << 31 and top < bottom < 1 << 31,
        f"JPEG 2000: it reaches from {top}, {left} to {bottom}, {right}",
    )
    _check_tiles((right, bottom), (left, top), tiles, len(data))
    bits = _check_components(data, 4 + _SIZ.size, components)
    declared = Declared(bottom - top, right - left, components, bits)
    check_density(declared, len(data), _MAX_PIXELS_PER_BYTE, "JPEG 2000")
    for marker, segment in _segments(data, 4 + length):
        if marker in (_COD, _COC):
            _check_coding(marker, segment, components)
    return declared


def _check_tiles(end: tuple[int, int], start: tuple[int, int], tiles: list[int], available: int) -> None:
    width, height, left, top = tiles
    check(width > 0 and height > 0, f"JPEG 2000: its tiles are of {height}x{width} pixels")
    check(
        left <= start[0] < left + width and top <= start[1] < top + height,
        f"JPEG 2000: its first tile, of {height}x{width} pixels at {top}, {left}, is outside the image",
    )
    count = -(-(end[0] - left) // width) * -(-(end[1] - top) // height)
    check(count <= _MAX_TILES, f"JPEG 2000: it has {count} tiles")
    check(
        count <= max(available // _MIN_TILE_BYTES, _FEW_TILES),
        f"JPEG 2000: {available} bytes cannot hold the {count} tiles that the header declares",
    )


def _check_components(data: memoryview, position: int, count: int) -> int:
    """Check the components of an image; return the largest bit depth of a component."""
    most = 0
    for at in range(position, position + 3 * count, 3):
        bits = (data[at] & 0x7F) + 1
        check(bits <= _MAX_BITS, f"JPEG 2000: a component has {bits} bits")
        check(data[at + 1] > 0 and data[at + 2] > 0, "JPEG 2000: a component is subsampled by 0")
        most = max(most, bits)
    return most


def _segments(data: memoryview, position: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the marker segments of the main header that follow the image's size, each as its marker and its contents."""
    for _ in range(_MAX_SEGMENTS):
        check(position + 4 <= len(data), "JPEG 2000: it is cut short within its header")
        marker, length = struct.unpack_from(">HH", data, position)
        if marker == _SOT:
            return
        check(marker >= 0xFF00 and marker != _SIZ_MARKER, f"JPEG 2000: there is no marker at byte {position}")
        check(length >= 2 and position + 2 + length <= len(data), "JPEG 2000: it is cut short within its header")
        yield marker, data[position + 4 : position + 2 + length]
        position += 2 + length
    check(False, f"JPEG 2000: its header has more than {_MAX_SEGMENTS} segments")


def _check_coding(marker: int, segment: memoryview, components: int) -> None:
    """Check the coding parameters of an image (COD) or of a component (COC)."""
    if marker == _COD:
        check(len(segment) >= 10, "JPEG 2000: its coding style is cut short")
        style, progression, layers, _ = struct.unpack_from(">BBHB", segment)
        check(progression <= _MAX_PROGRESSION, f"JPEG 2000: its progression is of the unknown kind {progression}")
        check(layers > 0, "JPEG 2000: it has no layers")
        parameters = segment[5:]
    else:
        index = 1 if components < 257 else 2
        check(len(segment) >= index + 6, "JPEG 2000: a component's coding style is cut short")
        check(
            int.from_bytes(segment[:index], "big") < components, "JPEG 2000: it codes a component that does not exist"
        )
        style, parameters = segment[index], segment[index + 1 :]
    levels, width, height, _, transform = parameters[:5]
    check(levels <= _MAX_LEVELS, f"JPEG 2000: it has {levels} levels")
    check(
        max(width, height) <= _MAX_SIDE and width + height <= _MAX_AREA,
        f"JPEG 2000: its code-blocks are of 2**{height + 2} x 2**{width + 2} values",
    )
    check(transform <= 1, f"JPEG 2000: its wavelets are of the unknown kind {transform}")
    if style & 1:
        precincts = parameters[5:]
        check(len(precincts) >= levels + 1, "JPEG 2000: it declares the precincts of too few levels")
        for size in precincts[1 : levels + 1]:
            check(size & 15 > 0 and size >> 4 > 0, "JPEG 2000: its precincts are smaller than the transform's step")


# -- boxes -----------------------------------------------------------------------------------------------------------


def boxes(data: memoryview, kind: str) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the boxes in ``data``, each as its name and its contents.

    Raises:
        CorruptImageError: a box extends beyond the end of the data, or there are too many boxes.
    """
    position = 0
    for _ in range(_MAX_BOXES):
        if position + 8 > len(data):
            return
        length, name = struct.unpack_from(">I4s", data, position)
        start = position + 8
        if length == 1:
            check(position + 16 <= len(data), f"{kind}: a box is cut short")
            (length,) = struct.unpack_from(">Q", data, start)
            start += 8
        elif length == 0:
            length = len(data) - position
        check(start <= position + length, f"{kind}: a box is of {length} bytes")
        yield name, data[start : position + length]
        position += length
    check(False, f"{kind}: it has more than {_MAX_BOXES} boxes")


def _find_boxes(data: memoryview) -> tuple[memoryview, memoryview]:
    """Return the contents of the header box, and the codestream."""
    header = None
    for name, contents in boxes(data, "JPEG 2000"):
        if name == b"jp2h":
            header = contents
        elif name == b"jp2c":
            check(header is not None, "JPEG 2000: its codestream comes before the header")
            assert header is not None
            return header, contents
    check(False, "JPEG 2000: it has no codestream")
    raise AssertionError("unreachable")


def _check_jp2_header(header: memoryview, declared: Declared) -> None:
    channels = declared.channels
    found = dict(boxes(header, "JPEG 2000"))
    image = found.get(b"ihdr", memoryview(b""))
    check(len(image) >= 14, "JPEG 2000: its header box is missing or cut short")
    height, width, components = struct.unpack_from(">IIH", image)
    check(
        (height, width, components) == (declared.height, declared.width, declared.channels),
        f"JPEG 2000: its header declares {height}x{width} pixels of {components} components, its codestream "
        f"{declared.height}x{declared.width} of {declared.channels}",
    )
    if b"pclr" in found:
        channels = _check_palette(found[b"pclr"])
        check(b"cmap" in found, "JPEG 2000: it has a palette, but no mapping for it")
    if b"cmap" in found:
        check(b"pclr" in found, "JPEG 2000: it applies a palette that does not exist")
        channels = _check_mapping(found[b"cmap"], components, channels)
    if b"cdef" in found:
        _check_definitions(found[b"cdef"], channels)


def _check_palette(palette: memoryview) -> int:
    """Check a palette; return its number of columns."""
    check(len(palette) >= 4, "JPEG 2000: its palette is cut short")
    entries, columns = struct.unpack_from(">HB", palette)
    check(0 < entries <= 1024 and columns > 0, f"JPEG 2000: its palette has {entries} entries of {columns} columns")
    check(len(palette) >= 3 + columns, "JPEG 2000: its palette is cut short")
    widths = [((bits & 0x7F) + 8) // 8 for bits in palette[3 : 3 + columns]]
    check(len(palette) >= 3 + columns + entries * sum(widths), "JPEG 2000: its palette is cut short")
    return int(columns)


def _check_mapping(mapping: memoryview, components: int, columns: int) -> int:
    """Check how channels are mapped to components or palette columns; return the number of channels."""
    count = len(mapping) // 4
    check(count > 0, "JPEG 2000: its palette is applied to nothing")
    for component, kind, column in struct.iter_unpack(">HBB", mapping[: 4 * count]):
        check(
            component < components and kind < 2, "JPEG 2000: its palette is applied to a component that does not exist"
        )
        check(kind == 0 or column < columns, "JPEG 2000: it applies a palette column that does not exist")
    return count


def _check_definitions(definitions: memoryview, channels: int) -> None:
    check(len(definitions) >= 2, "JPEG 2000: its channels' definition is cut short")
    (count,) = struct.unpack_from(">H", definitions)
    check(count > 0 and len(definitions) >= 2 + 6 * count, "JPEG 2000: its channels' definition is cut short")
    for channel, _, association in struct.iter_unpack(">HHH", definitions[2 : 2 + 6 * count]):
        check(channel < channels, f"JPEG 2000: it defines the channel {channel} of {channels}")
        check(association in (0, 65535) or association <= channels, "JPEG 2000: a channel has an unknown colour")
