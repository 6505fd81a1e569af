"""Decoding regions of baseline JPEGs with our own kernels.

The libraries decode whole images; of a region they still transform and convert a lot, and decode all of its codes no faster.
What is here takes the JPEGs that nearly all are: 8 bits, one sequential scan, Huffman codes, grey or YCbCr with chroma that
is whole, halved across, or halved both ways. The rest, and whatever is damaged in any way, is left to the libraries, which
then say what is wrong, or make of it what they can. Pixels are those of the libraries, bit by bit.

Source: ITU-T T.81, annexes B (markers) and F (the sequential process); ITU-T T.871 (JFIF).
"""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass, field

import numpy as np

from penstock.kernels.codecs.image_header import ImageHeader
from penstock.kernels.windows import Region

_PREFIX, _APP0, _APP14, _TABLES, _QUANTIZERS, _INTERVAL, _SCAN = 0xFF, 0xE0, 0xEE, 0xC4, 0xDB, 0xDD, 0xDA
_SEQUENTIAL = (0xC0, 0xC1)
_PASSED_OVER = {*range(0xE0, 0xF0), 0xFE}
_LARGEST_TABLE = 3
_local = threading.local()


class _NotBaselineError(Exception):
    """The JPEG is of a kind that is left to others, or damaged."""


@dataclass
class _Component:
    identifier: int
    across: int
    down: int
    quantizer: int
    dc_table: int = 0
    ac_table: int = 0


@dataclass
class _Segments:
    """What stands before a JPEG's scan.

    Attributes:
        scan: where the scan's data begin.
        tables: the code tables' lengths and symbols; by 16 times the class (0: DC, 1: AC) and the number.
        adobe: the colour transform that Adobe's marker names.
    """

    scan: int = 0
    height: int = 0
    width: int = 0
    interval: int = 0
    jfif: bool = False
    adobe: int | None = None
    components: list[_Component] = field(default_factory=list)
    quantizers: dict[int, np.ndarray] = field(default_factory=dict)
    tables: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


def decode_region(encoded: np.ndarray, header: ImageHeader, region: Region, output: np.ndarray, reverse: bool) -> bool:
    """Decodes a region of a JPEG into ``output``; false, with anything in ``output``, where it is left to others.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: of the file.
        region: in rows and columns as they are stored, within the image.
        output: to be filled; (H, W, 3) as RGB, (H, W, 1) as grey; uint8, contiguous.
        reverse: as BGR.
    """
    from penstock.kernels.cpu.jpeg.colour import LANES
    from penstock.kernels.cpu.jpeg.scan import decode_scan

    if output.shape[1] < LANES:
        return False
    try:
        segments = _read_segments(encoded.data)
        if (segments.height, segments.width) != (header.height, header.width):
            return False
        _check_kind(segments, output.shape[2])
        scan = _prepare(encoded, segments)
    except (_NotBaselineError, struct.error, IndexError, KeyError):
        return False
    top, left = region.anchor
    return bool(decode_scan(scan, _memory(segments.width), top, left, output, reverse))


def memory_of_this_thread(name: str, size: int) -> np.ndarray:
    """``size`` bytes, uint8, that this thread keeps under a name, with what it wrote there before."""
    held: np.ndarray | None = getattr(_local, name, None)
    if held is None or held.size < size:
        held = np.empty(size + size // 4, np.uint8)
        setattr(_local, name, held)
    return held[:size]


def _memory(width: int):  # type: ignore[no-untyped-def]
    """This thread's memory to decode images of a width in."""
    from penstock.kernels.cpu.jpeg.scan import memory_for

    held, widest = getattr(_local, "strips", (None, 0))
    if widest < width:
        held = memory_for(width)
        _local.strips = held, width
    return held


def _read_segments(data: memoryview) -> _Segments:
    """Walks the segments up to the scan; errors of several types where they cannot be walked."""
    segments = _Segments()
    position = 2
    while not segments.scan:
        prefix, marker, length = struct.unpack_from(">BBH", data, position)
        if marker == _PREFIX == prefix:
            position += 1
            continue
        if prefix != _PREFIX or length < 2:
            raise _NotBaselineError
        body = data[position + 4 : position + 2 + length]
        if len(body) != length - 2:
            raise _NotBaselineError
        position += 2 + length
        if marker in _SEQUENTIAL:
            _read_frame(body, segments)
        elif marker == _QUANTIZERS:
            _read_quantizers(body, segments)
        elif marker == _TABLES:
            _read_tables(body, segments)
        elif marker == _INTERVAL:
            (segments.interval,) = struct.unpack(">H", body)
        elif marker == _APP0:
            segments.jfif |= length >= 16 and body[:5] == b"JFIF\0"
        elif marker == _APP14 and length >= 14 and body[:5] == b"Adobe":
            segments.adobe = body[11]
        elif marker == _SCAN:
            _read_scan(body, segments)
            segments.scan = position
        elif marker not in _PASSED_OVER:
            raise _NotBaselineError
    return segments


def _read_frame(body: memoryview, segments: _Segments) -> None:
    depth, height, width, count = struct.unpack_from(">BHHB", body)
    if depth != 8 or segments.components or len(body) != 6 + 3 * count:
        raise _NotBaselineError
    segments.height, segments.width = height, width
    segments.components = [
        _Component(identifier, factors >> 4, factors & 15, quantizer)
        for identifier, factors, quantizer in struct.iter_unpack("BBB", body[6:])
    ]


def _read_quantizers(body: memoryview, segments: _Segments) -> None:
    if len(body) % 65:
        raise _NotBaselineError
    for start in range(0, len(body), 65):
        if body[start] > _LARGEST_TABLE:
            raise _NotBaselineError
        segments.quantizers[body[start]] = np.array(body[start + 1 : start + 65])


def _read_tables(body: memoryview, segments: _Segments) -> None:
    start = 0
    while start < len(body):
        if body[start] & 0xEF > _LARGEST_TABLE:
            raise _NotBaselineError
        lengths = np.array(body[start + 1 : start + 17])
        end = start + 17 + sum(body[start + 1 : start + 17])
        if len(lengths) != 16 or end > len(body):
            raise _NotBaselineError
        segments.tables[body[start]] = lengths, np.array(body[start + 17 : end])
        start = end


def _read_scan(body: memoryview, segments: _Segments) -> None:
    count = len(segments.components)
    if len(body) != 4 + 2 * count or body[0] != count or bytes(body[-3:]) != b"\x00\x3f\x00":
        raise _NotBaselineError
    for component, (identifier, tables) in zip(segments.components, struct.iter_unpack("BB", body[1:-3])):
        if identifier != component.identifier:
            raise _NotBaselineError
        component.dc_table, component.ac_table = tables >> 4, 16 | tables & 15


_YCBCR_NUMBERS = [1, 2, 3]
_LARGEST_FACTOR = 4
_LUMA_FACTORS = ((1, 1), (2, 1), (2, 2))
# Chroma of two columns is not smoothed.
_NARROWEST = 6


def _check_kind(segments: _Segments, channels: int) -> None:
    """Raises unless the kernels decode images of this kind to so many channels."""
    components = segments.components
    if not all(1 <= factor <= _LARGEST_FACTOR for c in components for factor in (c.across, c.down)):
        raise _NotBaselineError
    if len(components) == channels == 1:
        return
    if len(components) != 3 or segments.width < _NARROWEST:
        raise _NotBaselineError
    if not segments.jfif:
        numbers = [component.identifier for component in components]
        if numbers != _YCBCR_NUMBERS if segments.adobe is None else segments.adobe != 1:
            raise _NotBaselineError
    luma, *chroma = ((component.across, component.down) for component in components)
    if luma not in _LUMA_FACTORS or chroma != [(1, 1), (1, 1)]:
        raise _NotBaselineError


def _prepare(encoded: np.ndarray, segments: _Segments):  # type: ignore[no-untyped-def]
    """The scan as the kernels take it."""
    from penstock.kernels.cpu.jpeg.entropy import MARGIN, NATURAL_ORDER, TABLE, build_table
    from penstock.kernels.cpu.jpeg.scan import Scan, copy_scan

    components = segments.components
    across, down = (components[0].across, components[0].down) if len(components) > 1 else (1, 1)
    units = -(-segments.width // (8 * across)) * -(-segments.height // (8 * down))
    interval = segments.interval or units
    data = memory_of_this_thread("scan", encoded.size - segments.scan + MARGIN)
    ends = np.zeros(min(-(-units // interval), encoded.size), np.int64)
    if not copy_scan(encoded, segments.scan, data, ends):
        raise _NotBaselineError
    numbers = list(dict.fromkeys(number for c in components for number in (c.dc_table, c.ac_table)))
    tables = np.empty((len(numbers), TABLE), np.uint32)
    for number, table in zip(numbers, tables):
        if not build_table(*segments.tables[number], number < 16, table):
            raise _NotBaselineError
    quantizers = np.zeros((len(components), 64), np.int16)
    for row, component in zip(quantizers, components):
        row[NATURAL_ORDER] = segments.quantizers[component.quantizer]
    return Scan(
        data,
        ends,
        interval,
        tables.reshape(-1),
        np.array([numbers.index(component.dc_table) * TABLE for component in components]),
        np.array([numbers.index(component.ac_table) * TABLE for component in components]),
        quantizers.reshape(-1),
        across,
        down,
        segments.height,
        segments.width,
    )
