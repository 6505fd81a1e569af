"""Read the marker segments before the scans of a baseline or progressive JPEG.

Sources: ITU-T T.81, annex B (markers); ITU-T T.871 (JFIF); Adobe technical note 5116 (the marker APP14).

Nothing is read without a bounds check: files may be damaged or malicious.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.jpeg.entropy import MAX_CODES, NATURAL_ORDER, TABLE, are_codes, build_table, pair_codes
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit

_PREFIX = 0xFF
_FRAME, _FRAME_OF_ANY_TABLES, _PROGRESSIVE_FRAME = 0xC0, 0xC1, 0xC2
_TABLES, _QUANTIZERS, _INTERVAL, _SCAN = 0xC4, 0xDB, 0xDD, 0xDA
_APP0, _APP14, _APP15, _COMMENT = 0xE0, 0xEE, 0xEF, 0xFE
_TABLES_OF_A_CLASS, _AC = 4, 16
# The number of classes of code tables: for DC coefficients, for AC coefficients in baseline files, and for AC coefficients in progressive
# files, which have other symbols.
_CLASSES = 3
MAX_COMPONENTS, _LARGEST_FACTOR = 3, 4


class Segments(NamedTuple):
    """The contents of a file's segments; see :func:`memory_for_segments`.

    Attributes:
        numbers: the values at ``HEIGHT``, ``WIDTH``, ``INTERVAL`` (units between restarts, or 0), ``START`` (the offset of the
            scan's data), ``COMPONENTS``, ``JFIF`` (1 if there is such a marker), ``ADOBE`` (the transform in Adobe's marker, or
            -1), ``PROGRESSIVE`` (1 or 0) and ``HEADER`` (the offset of the scan's header, after its length).
        components: for each component: its number, its horizontal and vertical sampling factors, and the number of its quantizers.
        dc_tables, ac_tables: the offset in ``tables`` of each component's code table for DC and for AC coefficients.
        codes: the codes by class and number, as in the file: the number of codes of each length from 1 to 16 bits, and the codes'
            symbols.
        factors: the 64 quantizers of each component, one component after the other.
        quantizers: the quantizers by number.
        tables: the code tables, by class and number; :func:`build_tables` makes those that the scan needs.
        built: the codes from which the code tables were made.
        known: which quantizers and code tables the file has.
    """

    numbers: np.ndarray
    components: np.ndarray
    dc_tables: np.ndarray
    ac_tables: np.ndarray
    factors: np.ndarray
    quantizers: np.ndarray
    codes: np.ndarray
    tables: np.ndarray
    built: np.ndarray
    known: np.ndarray


HEIGHT, WIDTH, INTERVAL, START, COMPONENTS, JFIF, ADOBE, PROGRESSIVE, HEADER = range(9)
NUMBER, ACROSS, DOWN, _QUANTIZER = range(4)
LENGTHS = 16
CODES = LENGTHS + MAX_CODES
"""The size in bytes of the codes of one table, as in :attr:`Segments.codes`; unused bytes are 0."""


@kernel
def memory_for_segments() -> Segments:
    """Return memory for reading segments."""
    return Segments(
        np.zeros(9, np.int64),
        np.zeros((MAX_COMPONENTS, 4), np.int64),
        np.zeros(MAX_COMPONENTS, np.int64),
        np.zeros(MAX_COMPONENTS, np.int64),
        np.zeros(MAX_COMPONENTS * 64, np.int16),
        np.zeros((_TABLES_OF_A_CLASS, 64), np.int16),
        np.zeros((_CLASSES * _TABLES_OF_A_CLASS, CODES), np.uint8),
        np.zeros(_CLASSES * _TABLES_OF_A_CLASS * TABLE, np.uint64),
        np.zeros((_CLASSES * _TABLES_OF_A_CLASS, CODES), np.uint8),
        np.zeros((1 + _CLASSES) * _TABLES_OF_A_CLASS, np.bool_),
    )


@kernel
def read_segments(data: np.ndarray, segments: Segments) -> bool:
    """Read a file's segments up to its first scan; return False if the file is damaged, or neither baseline nor progressive.

    Args:
        data: the file; uint8.
        segments: filled; the header of a progressive file's scan is not read.
    """
    numbers = segments.numbers
    numbers[:] = 0
    numbers[ADOBE] = -1
    segments.known[:] = False
    return read_more_segments(data, 2, segments)


@kernel
def read_more_segments(data: np.ndarray, position: int, segments: Segments) -> bool:
    """Read the segments from ``position`` up to the next scan, as :func:`read_segments` does."""
    numbers = segments.numbers
    while position + 4 <= data.size and data[position] == _PREFIX:
        marker = data[position + 1]
        if marker == _PREFIX:
            position += 1
            continue
        length = _two_bytes(data, position + 2)
        body = data[position + 4 : position + 2 + length]
        if length < 2 or body.size != length - 2:
            return False
        position += 2 + length
        if marker in (_FRAME, _FRAME_OF_ANY_TABLES, _PROGRESSIVE_FRAME):
            good = _read_frame(body, segments)
            numbers[PROGRESSIVE] = marker == _PROGRESSIVE_FRAME
        elif marker == _QUANTIZERS:
            good = _read_quantizers(body, segments)
        elif marker == _TABLES:
            good = _read_tables(body, segments)
        elif marker == _INTERVAL:
            good = body.size == 2
            if good:
                numbers[INTERVAL] = _two_bytes(body, 0)
        elif marker == _SCAN:
            numbers[START], numbers[HEADER] = position, position - body.size
            return numbers[PROGRESSIVE] != 0 or _read_scan(body, segments)
        else:
            good = _APP0 <= marker <= _APP15 or marker == _COMMENT
            if marker == _APP0 and _begins(body, (74, 70, 73, 70, 0), 14):
                numbers[JFIF] = 1
            elif marker == _APP14 and _begins(body, (65, 100, 111, 98, 101), 12):
                numbers[ADOBE] = body[11]
        if not good:
            return False
    return False


@njit(inline="always", **OPTIONS)
def _two_bytes(data: np.ndarray, place: int) -> np.int64:
    return np.int64(data[place]) << 8 | np.int64(data[place + 1])


@njit(inline="always", **OPTIONS)
def _begins(body: np.ndarray, letters: tuple[int, int, int, int, int], shortest: int) -> bool:
    """Return whether a segment has at least ``shortest`` bytes and begins with the five ``letters``."""
    begins = body.size >= shortest
    for i in range(min(5, body.size)):
        begins &= body[i] == letters[i]
    return begins


@njit(inline="always", **OPTIONS)
def _read_frame(body: np.ndarray, segments: Segments) -> bool:
    numbers, components = segments.numbers, segments.components
    if body.size < 6 or numbers[COMPONENTS]:
        return False
    count = np.int64(body[5])
    if body[0] != 8 or body.size != 6 + 3 * count or (count != 1 and count != MAX_COMPONENTS):
        return False
    numbers[HEIGHT], numbers[WIDTH], numbers[COMPONENTS] = _two_bytes(body, 1), _two_bytes(body, 3), count
    for c in range(count):
        across, down = np.int64(body[7 + 3 * c] >> 4), np.int64(body[7 + 3 * c] & 15)
        if min(across, down) < 1 or max(across, down) > _LARGEST_FACTOR or body[8 + 3 * c] >= _TABLES_OF_A_CLASS:
            return False
        components[c, NUMBER], components[c, _QUANTIZER] = body[6 + 3 * c], body[8 + 3 * c]
        components[c, ACROSS], components[c, DOWN] = across, down
    return True


@njit(inline="always", **OPTIONS)
def _read_quantizers(body: np.ndarray, segments: Segments) -> bool:
    if body.size % 65:
        return False
    for start in range(0, body.size, 65):
        number = np.int64(body[start])
        if number >= _TABLES_OF_A_CLASS:
            return False
        for i in range(64):
            segments.quantizers[number, NATURAL_ORDER[i]] = body[start + 1 + i]
        segments.known[number] = True
    return True


@njit(inline="always", **OPTIONS)
def _are_same(codes: np.ndarray, given: np.ndarray) -> bool:
    """Return whether the file's codes, ``given``, equal a table's ``codes``, which were checked before. It suffices to compare the bytes of
    ``given``, because they include the numbers of codes, from which their length follows.
    """
    different = np.uint8(0)
    for i in range(min(codes.size, given.size)):
        different |= codes[np.uint64(i)] ^ given[np.uint64(i)]
    return different == 0 and given.size <= codes.size


@njit(inline="always", **OPTIONS)
def _read_tables(body: np.ndarray, segments: Segments) -> bool:
    start = 0
    while start < body.size:
        if body.size - start < 17:
            return False
        kind, lengths = np.int64(body[start]), body[start + 1 : start + 17]
        number = kind % _AC
        end = start + 17
        for count in lengths:
            end += count
        if kind >= 2 * _AC or number >= _TABLES_OF_A_CLASS or end > body.size:
            return False
        is_progressive = segments.numbers[PROGRESSIVE] != 0
        if kind >= _AC:
            number += (2 if is_progressive else 1) * _TABLES_OF_A_CLASS
        codes, given = segments.codes[number], body[start + 1 : end]
        # Most files have the same codes as the previous file.
        if not _are_same(codes, given):
            if not are_codes(lengths, given[LENGTHS:], kind < _AC, is_progressive):
                return False
            # A loop instead of an array assignment, whose error message would take seconds to compile.
            for i in range(codes.size):
                codes[i] = given[i] if i < given.size else 0
        segments.known[_TABLES_OF_A_CLASS + number] = True
        start = end
    return True


@njit(inline="always", **OPTIONS)
def _read_scan(body: np.ndarray, segments: Segments) -> bool:
    components, known = segments.components, segments.known
    count = segments.numbers[COMPONENTS]
    if count == 0 or body.size != 4 + 2 * count or body[0] != count:
        return False
    if body[1 + 2 * count] != 0 or body[2 + 2 * count] != 63 or body[3 + 2 * count] != 0:
        return False
    for c in range(count):
        dc, ac, quantizer = np.int64(body[2 + 2 * c] >> 4), np.int64(body[2 + 2 * c] & 15), components[c, _QUANTIZER]
        if body[1 + 2 * c] != components[c, NUMBER] or max(dc, ac) >= _TABLES_OF_A_CLASS:
            return False
        dc, ac = _TABLES_OF_A_CLASS + dc, 2 * _TABLES_OF_A_CLASS + ac
        if not (known[quantizer] and known[dc] and known[ac]):
            return False
        segments.dc_tables[c] = (dc - _TABLES_OF_A_CLASS) * TABLE
        segments.ac_tables[c] = (ac - _TABLES_OF_A_CLASS) * TABLE
        for i in range(64):
            segments.factors[64 * c + i] = segments.quantizers[quantizer, i]
    return True


@kernel
def build_tables(segments: Segments) -> None:
    """Build the code tables that the scan needs, except tables that were already built from the same codes."""
    for c in range(segments.numbers[COMPONENTS]):
        for start in (segments.dc_tables[c], segments.ac_tables[c]):
            _build_table(segments, start // TABLE)


@inner
def _build_table(segments: Segments, number: int) -> None:
    codes, built = segments.codes[number], segments.built[number]
    if (codes == built).all():
        return
    for i in range(codes.size):
        built[i] = codes[i]
    table, lengths = segments.tables[number * TABLE : (number + 1) * TABLE], codes[:LENGTHS]
    is_dc = number < _TABLES_OF_A_CLASS
    build_table(lengths, codes[LENGTHS : LENGTHS + lengths.sum()], is_dc, table)
    if not is_dc:
        pair_codes(table)


@inner
def find_table(segments: Segments, number: int, is_dc: bool, largest: int) -> int:
    """Return the offset in ``tables`` of a code table of a progressive file, and build the table if necessary; -1 if the file has no such
    table, or an invalid one.

    Args:
        number: the table's number within its class.
        is_dc: whether the table is for DC coefficients.
        largest: the maximum size in bits of a value; a table with symbols for larger values is invalid.
    """
    if number >= _TABLES_OF_A_CLASS:
        return -1
    number += 0 if is_dc else 2 * _TABLES_OF_A_CLASS
    if not segments.known[_TABLES_OF_A_CLASS + number]:
        return -1
    codes = segments.codes[number]
    # All bytes can be checked, because those of unused symbols are zeros.
    for i in range(LENGTHS, CODES):
        if codes[i] & 15 > largest:
            return -1
    _build_table(segments, number)
    return number * TABLE


@inner
def take_quantizers(segments: Segments) -> bool:
    """Copy each component's quantizers to ``factors``; return False if any are missing.

    All quantizers are then marked as unknown, so that quantizers that are read later can be detected; see :func:`has_quantizers`.
    """
    for c in range(segments.numbers[COMPONENTS]):
        quantizer = segments.components[c, _QUANTIZER]
        if not segments.known[quantizer]:
            return False
        for i in range(64):
            segments.factors[64 * c + i] = segments.quantizers[quantizer, i]
    segments.known[:_TABLES_OF_A_CLASS] = False
    return True


@inner
def has_quantizers(segments: Segments) -> np.bool_:
    """Return whether quantizers were read after :func:`take_quantizers` was called."""
    return segments.known[:_TABLES_OF_A_CLASS].any()


# In narrower images, halved chroma may have only two columns, and other decoders do not smooth that.
_MIN_WIDTH_PIXELS = 6


@kernel
def find_sampling(segments: Segments) -> tuple[int, int]:
    """Return the horizontal and vertical subsampling of chroma; 0, 0 if the image is not supported.

    Supported are grey images, and YCbCr images whose chroma is subsampled by up to 2 in each direction, or by 4
    horizontally.
    """
    components, numbers = segments.components, segments.numbers
    if numbers[COMPONENTS] == 1:
        return 1, 1
    if not numbers[JFIF]:
        ycbcr = numbers[ADOBE] == 1
        if numbers[ADOBE] < 0:
            ycbcr = components[0, NUMBER] == 1 and components[1, NUMBER] == 2 and components[2, NUMBER] == 3
        if not ycbcr:
            return 0, 0
    across, down = components[0, ACROSS], components[0, DOWN]
    chroma = max(components[1, ACROSS], components[1, DOWN], components[2, ACROSS], components[2, DOWN])
    known = max(across, down) <= 2 or (across == 4 and down == 1)
    if chroma != 1 or not known or numbers[WIDTH] < _MIN_WIDTH_PIXELS:
        return 0, 0
    return across, down
