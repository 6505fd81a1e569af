"""Read the coefficients of a progressive JPEG from its scans.

Source: ITU-T T.81, annex G (progressive coding).

Files about which a library might warn, and files whose coefficients are incomplete, are left to libraries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.jpeg.coefficients import (
    BEGIN,
    BLOCKS_ACROSS,
    BLOCKS_DOWN,
    FIRST_BLOCK,
    FIRST_COLUMN,
    FIRST_ROW,
    KEPT_COLUMNS,
    KEPT_ROWS,
    LEVELS,
    PAIRS,
    PER_ROW,
    Coefficients,
)
from penstock.kernels.cpu.jpeg.entropy import (
    ENDED,
    FULL,
    LONGEST_AC,
    LONGEST_DC,
    first_code,
    looked_up,
    order_of,
    put_values,
    read_code,
    refilled,
)
from penstock.kernels.cpu.jpeg.scan import copy_scan, ends_image
from penstock.kernels.cpu.jpeg.segments import (
    ACROSS,
    COMPONENTS,
    DOWN,
    HEADER,
    HEIGHT,
    INTERVAL,
    MAX_COMPONENTS,
    NUMBER,
    START,
    WIDTH,
    Segments,
    find_table,
    has_quantizers,
    read_more_segments,
    take_quantizers,
)
from penstock.kernels.cpu.jpeg.transform import OTHER, PAIR, PLACES
from penstock.kernels.cpu.options import OPTIONS, inner, njit
from penstock.kernels.cpu.simd import at, pointer, pointer_at
from penstock.kernels.cpu.simd_integers import count_bits, put, rarely, trailing_zeros

_UNKNOWN = -1
_MAX_DC_LEVEL = 13
# DC coefficients are stored in another array, so invalid and unneeded values can be written to their position.
_NOWHERE = 0
_ORDER = order_of(PLACES, _NOWHERE)
_ONE = np.uint64(1)


class _Pass(NamedTuple):
    """A scan ready to be read.

    Attributes:
        data, ends: as from ``copy_scan``.
        interval: the number of units between restarts.
        components: the numbers of the scan's components; int64.
        first, last: the first and the last coefficient that the scan encodes, in zig-zag order.
        level: the number of the lowest bit that the scan encodes.
        refines: whether the scan refines coefficients whose higher bits were in an earlier scan.
        tables: the offset of each component's code table; 0 if no table is needed.
    """

    data: np.ndarray
    ends: np.ndarray
    interval: int
    components: np.ndarray
    first: int
    last: int
    level: int
    refines: bool
    tables: np.ndarray


@inner
def read_coefficients(encoded: np.ndarray, segments: Segments, data: np.ndarray, coefficients: Coefficients) -> int:
    """Read all scans; return the offset at which the image ends, or 0 if the file is damaged or has to be left to a library.

    Args:
        encoded: the file; uint8.
        segments: the segments up to the first scan. Afterwards, ``START`` is the end of the image: all scans before it have been read.
        data: scratch memory for a scan's data.
        coefficients: filled; must be zeros.
    """
    count, numbers = segments.numbers[COMPONENTS], segments.numbers
    levels = np.full((MAX_COMPONENTS, FULL), _UNKNOWN, np.int64)
    components, tables = np.zeros(MAX_COMPONENTS, np.int64), np.zeros(MAX_COMPONENTS, np.int64)
    if not take_quantizers(segments):
        return 0
    while True:
        header = encoded[numbers[HEADER] : numbers[START]]
        chosen = _choose_components(header, segments, components)
        if chosen == 0:
            return 0
        first, last = int(np.int64(header[-3])), int(np.int64(header[-2]))
        level = int(np.int64(header[-1] & 15))
        refines = header[-1] >> 4 != 0
        if not _advance(levels, components[:chosen], first, last, np.int64(header[-1] >> 4), level):
            return 0
        for i in range(chosen):
            choice = header[2 + 2 * i]
            tables[i] = 0
            if first > 0:
                tables[i] = find_table(segments, np.int64(choice & 15), False, 1 if refines else LONGEST_AC)
            elif not refines:
                tables[i] = find_table(segments, np.int64(choice >> 4), True, LONGEST_DC)
            if tables[i] < 0:
                return 0
        units = _units(segments, coefficients, components[:chosen])
        interval = numbers[INTERVAL] if numbers[INTERVAL] else units
        ends = np.zeros(min(-(-units // interval), len(encoded)), np.int64)
        end = copy_scan(encoded, numbers[START], data, ends)
        if end == 0:
            return 0
        scan = _Pass(data, ends, interval, components[:chosen], first, last, level, refines, tables[:chosen])
        if first == 0:
            good = _read_direct(scan, segments, coefficients)
        elif refines:
            good = _read_corrections(scan, segments.tables, coefficients)
        else:
            good = _read_band(scan, segments.tables, coefficients)
        if not good:
            return 0
        if ends_image(encoded, end):
            numbers[START] = end + 2
            return end + 2 if (levels[:count] == 0).all() else 0
        if not read_more_segments(encoded, end, segments) or has_quantizers(segments):
            return 0


@inner
def _choose_components(header: np.ndarray, segments: Segments, components: np.ndarray) -> int:
    """Fill in the numbers of a scan's components, which must be in the order of the image; return how many, or 0 if they are invalid."""
    if header.size < 6:
        return 0
    count, known = int(np.int64(header[0])), segments.numbers[COMPONENTS]
    if count < 1 or count > known or header.size != 4 + 2 * count:
        return 0
    c = 0
    for i in range(count):
        while c < known and segments.components[c, NUMBER] != header[1 + 2 * i]:
            c += 1
        if c == known:
            return 0
        components[i] = c
        c += 1
    return count


@inner
def _advance(levels: np.ndarray, components: np.ndarray, first: int, last: int, before: int, level: int) -> bool:
    """Record which bits of which coefficients a scan encodes; return False unless these are the next bits of all its coefficients.

    ``levels`` holds the lowest bit read so far of each component's coefficients; ``before`` and ``level`` are the lowest bit before and
    after the scan, as in its header.
    """
    if first > last or last >= FULL or (first == 0) != (last == 0) or (first > 0 and components.size != 1):
        return False
    if level > (LEVELS if first > 0 else _MAX_DC_LEVEL) or (before != 0 and before != level + 1):
        return False
    for c in components:
        if first > 0 and levels[c, 0] == _UNKNOWN:
            return False
        for k in range(first, last + 1):
            if levels[c, k] != (before if before != 0 else _UNKNOWN):
                return False
            levels[c, k] = level
    return True


@inner
def _units(segments: Segments, coefficients: Coefficients, components: np.ndarray) -> int:
    """Return the number of units in a scan of these components."""
    if components.size == 1:
        plane = coefficients.planes[components[0]]
        return plane[BLOCKS_ACROSS] * plane[BLOCKS_DOWN]
    across, down = _units_of_image(segments)
    return across * down


@inner
def _units_of_image(segments: Segments) -> tuple[int, int]:
    """Return the number of units in a row and in a column of an image."""
    across, down, count = 1, 1, segments.numbers[COMPONENTS]
    for c in range(count):
        across, down = max(across, segments.components[c, ACROSS]), max(down, segments.components[c, DOWN])
    width, height = segments.numbers[WIDTH], segments.numbers[HEIGHT]
    return -(-width // (8 * across)), -(-height // (8 * down))


@njit(inline="always", **OPTIONS)
def _consumed(place: np.uint64, count: np.uint64) -> np.int64:
    """Return the number of bytes consumed, including one that is partly consumed."""
    return np.int64(place - (count >> np.uint64(3)))


@inner
def _read_direct(scan: _Pass, segments: Segments, coefficients: Coefficients) -> bool:
    """Read a scan that encodes DC coefficients, or one more bit of each of them; return False for damaged data."""
    direct, tables, data = pointer(coefficients.direct), pointer(segments.tables), pointer(scan.data)
    predicted = np.zeros(MAX_COMPONENTS, np.int64)
    together = scan.components.size > 1
    per_row = _units_of_image(segments)[0]
    units, level = _units(segments, coefficients, scan.components), scan.level
    if not together:
        per_row = coefficients.planes[scan.components[0], BLOCKS_ACROSS]
    row, column, begin = 0, 0, 0
    for number in range(scan.ends.size):
        place, bits, count = refilled(data, np.uint64(begin), np.uint64(0), np.uint64(0))
        predicted[:] = 0
        end = scan.ends[number]
        for _ in range(min(scan.interval, units - number * scan.interval)):
            for i in range(scan.components.size):
                c = scan.components[i]
                across, down = 1, 1
                if together:
                    across, down = segments.components[c, ACROSS], segments.components[c, DOWN]
                stride, codes = coefficients.planes[c, PER_ROW], pointer_at(tables, scan.tables[i])
                block = coefficients.planes[c, FIRST_BLOCK] + row * down * stride + column * across
                for y in range(down):
                    for x in range(across):
                        own = block + y * stride + x
                        first_bits = looked_up(bits)
                        place, bits, count = refilled(data, place, bits, count)
                        if scan.refines:
                            bit = np.int64(bits >> np.uint64(63))
                            put(direct, own, np.int64(at(direct, own)) | bit << level)
                            bits, count = bits << _ONE, count - _ONE
                        else:
                            entry, taken, value = read_code(codes, first_bits, bits)
                            if rarely(first_code(codes, entry)[1] != np.uint64(0)):
                                return False
                            predicted[c] += value
                            put(direct, own, predicted[c] << level)
                            bits, count = bits << taken, count - taken
            if _consumed(place, count) > end:
                return False
            column += 1
            if column == per_row:
                row, column = row + 1, 0
        if _consumed(place, count) != end:
            return False
        begin = end
    return True


@inner
def _order_up_to(last: int) -> np.ndarray:
    """Return the positions at which to store a scan's coefficients; all beyond ``last`` go to ``_NOWHERE``."""
    order = _ORDER.copy()
    order[last + 1 :] = _NOWHERE
    return order


@njit(inline="always", **OPTIONS)
def _place_of(plane: np.ndarray, row: int, column: int) -> int:
    """Return the position of a block's coefficients; -1 if they are not stored."""
    y, x = row - plane[FIRST_ROW], column - plane[FIRST_COLUMN]
    if y < 0 or y >= plane[KEPT_ROWS] or x < 0 or x >= plane[KEPT_COLUMNS]:
        return -1
    return plane[BEGIN] + (y * plane[PAIRS] + x // 2) * PAIR + x % 2 * OTHER


@njit(inline="always", **OPTIONS)
def _read_run(bits: np.uint64, size: np.uint64) -> np.int64:
    """Return the number of further blocks without more coefficients, encoded in the ``size`` bits after an end-of-block code."""
    return (np.int64(1) << np.int64(size)) - 1 + np.int64((bits >> _ONE) >> (np.uint64(63) - size))


@inner
def _read_band(scan: _Pass, all_tables: np.ndarray, coefficients: Coefficients) -> bool:
    """Read a scan that encodes AC coefficients for the first time; return False for damaged data."""
    plane, order = coefficients.planes[scan.components[0]], _order_up_to(scan.last)
    dropped = np.full_like(order, _NOWHERE)
    data, codes = pointer(scan.data), pointer_at(pointer(all_tables), scan.tables[0])
    values, nonzero = pointer(coefficients.values), pointer(coefficients.nonzero)
    kept_order, dropped_order = pointer(order), pointer(dropped)
    before, last, level = np.uint64(scan.first - 1), np.uint64(scan.last), scan.level
    columns = plane[BLOCKS_ACROSS]
    units, row, column, begin = columns * plane[BLOCKS_DOWN], 0, 0, 0
    for number in range(scan.ends.size):
        place, bits, count = refilled(data, np.uint64(begin), np.uint64(0), np.uint64(0))
        end, run = scan.ends[number], np.int64(0)
        for _ in range(min(scan.interval, units - number * scan.interval)):
            if run > 0:
                run -= 1
            else:
                start, targets = _place_of(plane, row, column), kept_order
                if start < 0:
                    start, targets = 0, dropped_order
                block, reached, found = pointer_at(values, start), before, np.uint64(0)
                while True:
                    first_bits = looked_up(bits)
                    place, bits, count = refilled(data, place, bits, count)
                    entry, taken, value = read_code(codes, first_bits, bits)
                    ends = put_values(codes, entry, value, reached, block, targets, level)
                    if ends >= last:
                        break
                    found |= _told(codes, entry, reached, ends)
                    reached = ends
                    bits, count = bits << taken, count - taken
                    entry, taken, value = read_code(codes, looked_up(bits), bits)
                    ends = put_values(codes, entry, value, reached, block, targets, level)
                    if ends >= last:
                        break
                    found |= _told(codes, entry, reached, ends)
                    reached = ends
                    bits, count = bits << taken, count - taken
                taken_first, steps, size, second = first_code(codes, entry)
                first = reached + steps
                if first >= ENDED:
                    bits, count = bits << taken_first, count - taken_first
                    if second:
                        place, bits, count = refilled(data, place, bits, count)
                        run = _read_run(bits, second)
                        bits, count = bits << second, count - second
                elif first == last:
                    # The second code belongs to the next block, so only the first one is consumed here.
                    found |= (size & _ONE) << first
                    bits, count = bits << taken_first, count - taken_first
                else:
                    if first > last or (ends != last and ends < ENDED):
                        return False
                    found |= _told(codes, entry, reached, ends)
                    bits, count = bits << taken, count - taken
                own = plane[FIRST_BLOCK] + row * plane[PER_ROW] + column
                put(nonzero, own, at(nonzero, own) | found)
                if _consumed(place, count) > end:
                    return False
            column += 1
            if column == columns:
                row, column = row + 1, 0
        if run > 0 or _consumed(place, count) != end:
            return False
        begin = end
    return True


@njit(inline="always", **OPTIONS)
def _told(codes: types.CPointer, entry: np.uint64, reached: np.uint64, ends: np.uint64) -> np.uint64:
    """Return a mask of the coefficients that an entry of a code table makes nonzero.

    ``reached`` and ``ends`` are the positions of the last coefficient before and after the entry.
    """
    _, steps, size, second = first_code(codes, entry)
    is_second = np.uint64(second != np.uint64(0))
    return (size & _ONE) << (reached + steps) | is_second << (ends & np.uint64(63))


@inner
def _read_corrections(scan: _Pass, all_tables: np.ndarray, coefficients: Coefficients) -> bool:
    """Read a scan that refines AC coefficients; return False for damaged data."""
    plane = coefficients.planes[scan.components[0]]
    data, codes = pointer(scan.data), pointer_at(pointer(all_tables), scan.tables[0])
    values, nonzero, order = pointer(coefficients.values), pointer(coefficients.nonzero), pointer(_ORDER)
    corrections, level = pointer(coefficients.corrections), scan.level
    band = (np.uint64(2) << np.uint64(scan.last)) - (_ONE << np.uint64(scan.first))
    columns = plane[BLOCKS_ACROSS]
    units, row, column, begin = columns * plane[BLOCKS_DOWN], 0, 0, 0
    for number in range(scan.ends.size):
        place, bits, count = refilled(data, np.uint64(begin), np.uint64(0), np.uint64(0))
        end, run = scan.ends[number], np.int64(0)
        for _ in range(min(scan.interval, units - number * scan.interval)):
            own = plane[FIRST_BLOCK] + row * plane[PER_ROW] + column
            known = at(nonzero, own) & band
            left, found, corrected = band, np.uint64(0), np.uint64(0)
            if run > 0:
                run -= 1
            else:
                start = _place_of(plane, row, column)
                while left != np.uint64(0):
                    first_bits = looked_up(bits)
                    place, bits, count = refilled(data, place, bits, count)
                    entry, _taken, value = read_code(codes, first_bits, bits)
                    taken, steps, _size, second = first_code(codes, entry)
                    bits, count = bits << taken, count - taken
                    if steps == ENDED:
                        if second:
                            place, bits, count = refilled(data, place, bits, count)
                            run = _read_run(bits, second)
                            bits, count = bits << second, count - second
                        break
                    zeros = ~known & left
                    for _ in range(np.int64(steps) - 1):
                        zeros &= zeros - _ONE
                    if rarely(zeros == np.uint64(0)):
                        return False
                    spot = zeros & (~zeros + _ONE)
                    passed = left & (spot - _ONE)
                    left &= ~(passed | spot)
                    place, bits, count, told = _read_bits(data, place, bits, count, known & passed)
                    corrected |= told
                    if value != 0:
                        found |= spot
                        if start >= 0:
                            put(values, start + np.int64(at(order, trailing_zeros(spot))), value << level)
            place, bits, count, told = _read_bits(data, place, bits, count, known & left)
            corrected |= told
            word = LEVELS * own + level
            put(corrections, word, at(corrections, word) | corrected)
            put(nonzero, own, at(nonzero, own) | found)
            if _consumed(place, count) > end:
                return False
            column += 1
            if column == columns:
                row, column = row + 1, 0
        if run > 0 or _consumed(place, count) != end:
            return False
        begin = end
    return True


# The number of bits that can be read after a refill, at least.
_MOST_BITS = 56


@njit(inline="always", **OPTIONS)
def _read_bits(
    data: types.CPointer, place: np.uint64, bits: np.uint64, count: np.uint64, wanted: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Read one bit for each bit that is set in ``wanted``, from the lowest on; return ``place``, ``bits`` and ``count`` after them, and a
    word with the bits that were read in the positions of those in ``wanted``.
    """
    told, left = np.uint64(0), wanted
    while left != np.uint64(0):
        place, bits, count = refilled(data, place, bits, count)
        part = left
        if rarely(count_bits(left) > np.uint64(_MOST_BITS)):
            part = left & np.uint64(0xFFFFFFFF)
        left ^= part
        taken, coming = count_bits(part), bits
        while part != np.uint64(0):
            # Two bits at a time: as the number of iterations is unpredictable, fewer iterations are better.
            lowest = part & (~part + _ONE)
            told |= lowest & (~(coming >> np.uint64(63)) + _ONE)
            part ^= lowest
            lowest = part & (~part + _ONE)
            told |= lowest & (~((coming >> np.uint64(62)) & _ONE) + _ONE)
            part ^= lowest
            coming <<= np.uint64(2)
        bits, count = bits << taken, count - taken
    return place, bits, count, told
