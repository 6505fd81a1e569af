"""Entropy decoding of baseline JPEG: Huffman codes to coefficients.

Source: ITU-T T.81, annex F.2.2 (decoding), annex C (code tables) and figure A.6 (the zig-zag sequence).

The scan's data is read as one string of bits without stuffing (:func:`copy_scan`). The next bits are the highest of a
64-bit word, ``bits``, of which ``count`` are valid; ``place`` is the position of the next byte. Bounds are not checked
while a unit is decoded: reads past the end reach the margin after the data, and the caller checks positions between
units.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from penstock.kernels.cpu.options import OPTIONS, inner
from penstock.kernels.cpu.simd import at
from penstock.kernels.cpu.simd_integers import load_word, put

MARGIN = 4096
"""Padding after a scan's data. The longest unit, 6 blocks of 64 coefficients of up to 27 bits, has 1296 bytes."""

BLOCK = 72
"""Elements of a block: 64 coefficients in rows, and one more that receives invalid ones."""

FULL, ENDED = 64, 128
"""The number of coefficients in a block, and the step of an end-of-block code beyond the last nonzero one."""

_NOWHERE = 64


def _zig_zag(place: int) -> tuple[int, int]:
    """The sort key of positions in a block: diagonals, every other one upwards."""
    row, column = divmod(place, 8)
    return row + column, row if (row + column) % 2 else column


_ZIG_ZAG = sorted(range(FULL), key=_zig_zag)
NATURAL_ORDER = np.array(_ZIG_ZAG, np.uint8)
KEPT = np.array(_ZIG_ZAG + [_NOWHERE] * (ENDED + 16), np.uint8)
"""The positions of a block's coefficients."""
DROPPED = np.full_like(KEPT, _NOWHERE)
"""The positions for coefficients to be dropped."""

# A code table: an entry for each value of the next _LOOKUP bits, an entry for each code, and for each code length the
# first value of that many bits (in 16) that is not such a code, and the position of its entry minus that value.
_LOOKUP = 11
_CODES = 1 << _LOOKUP
MAX_CODES = 256
_LIMITS = _CODES + MAX_CODES
_OFFSETS = _LIMITS + 18
TABLE = _OFFSETS + 18
"""The size of a code table, in uint64."""

# An entry holds, from its lowest bits on, how many bits it stands for (8); of its first code the bits (6), the bits of
# the value (4), and how many coefficients to advance (8); how many to advance altogether (8), and the bits of the first
# code and its value (8). The highest 16 bits are the value of the second code, if both codes and their values are within
# the _LOOKUP bits. 0 marks a longer code, _INVALID an invalid one.
_LENGTH, _SIZE, _STEPS, _ALL_STEPS, _FIRST, _SECOND = 8, 14, 18, 26, 34, 48
_LONGEST_DC, _LONGEST_AC = 11, 10


def _entry(steps: int, length: int, size: int) -> int:
    """The entry of a single code."""
    bits = length + size
    return bits << _FIRST | steps << _ALL_STEPS | steps << _STEPS | size << _SIZE | length << _LENGTH | bits


_INVALID = _entry(FULL, 17, 0)
_HIGHEST = np.int64(-1 << 63)
_single = njit(inline="always", **OPTIONS)(_entry)


@inner
def are_codes(lengths: np.ndarray, symbols: np.ndarray, is_dc: bool) -> bool:
    """Whether these are codes of a baseline image.

    Args:
        lengths: the number of codes of 1 to 16 bits; uint8 of shape (16,).
        symbols: of the codes, in order; uint8.
        is_dc: symbols are value sizes; otherwise a number of zeros precedes the size.
    """
    code, known = 0, 0
    for length in range(1, 17):
        for _ in range(lengths[length - 1]):
            if known >= min(symbols.size, MAX_CODES) or code >= 1 << length:
                return False
            zeros, size = symbols[known] >> 4, symbols[known] & 15
            if is_dc:
                if symbols[known] > _LONGEST_DC:
                    return False
            elif size > _LONGEST_AC or (size == 0 and zeros != 0 and zeros != 15):
                return False
            code += 1
            known += 1
        if code == 1 << length:
            return False  # A code of all ones is invalid.
        code <<= 1
    return known == symbols.size


@inner
def build_table(lengths: np.ndarray, symbols: np.ndarray, is_dc: bool, table: np.ndarray) -> None:
    """Fills a code table; the arguments are those of :func:`are_codes`, and ``table`` of shape (TABLE,), uint64."""
    table[:] = 0
    code, known = 0, 0
    for length in range(1, 17):
        table[_OFFSETS + length] = known - code
        for _ in range(lengths[length - 1]):
            zeros, size = np.int64(symbols[known] >> 4), np.int64(symbols[known] & 15)
            steps = 0 if is_dc else ENDED if symbols[known] == 0 else zeros + 1
            entry = _single(steps, length, size)
            table[_CODES + known] = entry
            if length <= _LOOKUP:
                spread = _LOOKUP - length
                table[code << spread : (code + 1) << spread] = entry
            code += 1
            known += 1
        table[_LIMITS + length] = code << (16 - length)
        code <<= 1


@inner
def pair_codes(table: np.ndarray) -> None:
    """Adds the second code to entries of a table of AC codes whose bits hold two codes with their values."""
    for looked in range(_CODES):
        first = np.int64(table[looked])
        bits, steps = (first >> _FIRST) & 255, (first >> _STEPS) & 255
        if first == 0 or bits >= _LOOKUP or steps == ENDED:
            continue
        rest = (looked << bits) & (_CODES - 1)
        second = np.int64(table[rest])
        more = (second >> _FIRST) & 255
        if second == 0 or bits + more > _LOOKUP:
            continue
        size = (second >> _SIZE) & 15
        value = (rest >> (_LOOKUP - more)) & ((1 << size) - 1)
        if size and value >> (size - 1) == 0:
            value -= (1 << size) - 1
        kept = first & ~(np.int64(255) | np.int64(255) << _ALL_STEPS)
        steps += (second >> _STEPS) & 255
        table[looked] = np.uint64(kept | (bits + more) | steps << _ALL_STEPS | (value & 0xFFFF) << _SECOND)


@inner
def _long_entry(table: types.CPointer, base: int, bits: np.uint64) -> np.uint64:
    """The entry of a code with more than ``_LOOKUP`` bits."""
    first = np.int64(bits >> np.uint64(48))
    start = np.int64(base)
    length = _LOOKUP + 1
    while length < 17 and first >= np.int64(at(table, start + _LIMITS + length)):
        length += 1
    if length == 17:
        return np.uint64(_INVALID)
    known = (first >> (16 - length)) + np.int64(at(table, start + _OFFSETS + length))
    return at(table, start + _CODES + (np.int64(known) & (MAX_CODES - 1)))


@njit(forceinline=True, **OPTIONS)
def refilled(
    scan: types.CPointer, place: np.int64, bits: np.uint64, count: np.uint64
) -> tuple[np.int64, np.uint64, np.uint64]:
    """Refills the reader to at least 56 bits."""
    bits |= load_word(scan, place) >> count
    place += (np.uint64(63) - count) >> np.uint64(3)
    return place, bits, count | np.uint64(56)


@njit(forceinline=True, **OPTIONS)
def _next_entry(table: types.CPointer, base: int, bits: np.uint64) -> tuple[np.uint64, np.int64]:
    """The entry of the next bits, and the value after its first code."""
    entry = at(table, base + (bits >> np.uint64(64 - _LOOKUP)))
    if entry == 0:
        entry = _long_entry(table, base, bits)
    size = (entry >> np.uint64(_SIZE)) & np.uint64(15)
    # Shifts use the lowest bits only, so the bits of a code need not be masked.
    rest = bits << ((entry >> np.uint64(_LENGTH)) & np.uint64(63))
    # The value's bits; with a leading 0 they mean a negative one, greater by 2^size - 1.
    # Its first bit, inverted, is the sign, and is repeated by the shift.
    signed = (np.int64(rest) >> 1) ^ _HIGHEST
    return entry, (signed >> (np.int64(63) - np.int64(size))) + np.int64(np.uint64(signed) >> np.uint64(63))


@njit(forceinline=True, **OPTIONS)
def _put_values(
    entry: np.uint64, value: np.int64, reached: np.uint64, block: types.CPointer, start: int, order: types.CPointer
) -> np.uint64:
    """Puts the values of an entry into a block; returns where they end."""
    ends = reached + ((entry >> np.uint64(_ALL_STEPS)) & np.uint64(255))
    # The second first: where there is none, the first replaces it.
    put(block, start + np.uint64(at(order, ends)), entry >> np.uint64(_SECOND))
    put(block, start + np.uint64(at(order, reached + ((entry >> np.uint64(_STEPS)) & np.uint64(255)))), value)
    return ends


@njit(forceinline=True, **OPTIONS)
def decode_block(
    scan: types.CPointer,
    place: np.int64,
    bits: np.uint64,
    count: np.uint64,
    tables: types.CPointer,
    dc: int,
    ac: int,
    predicted: np.int64,
    block: types.CPointer,
    start: int,
    order: types.CPointer,
) -> tuple[np.int64, np.uint64, np.uint64, np.int64, np.uint64]:
    """Decodes a block: returns the reader, the DC coefficient, and where the coefficients ended.

    The end is 63 if the last coefficient was decoded, or ``ENDED`` beyond the last before an end-of-block code. The bit
    ``FULL`` is set if the block is invalid.

    Args:
        scan, tables, block, order: pointers.
        tables: those at ``dc`` and ``ac`` are used.
        predicted: the DC coefficient of the component's previous block.
        block: receives the coefficients, from ``start`` on; int16, zeroed.
        order: ``KEPT`` or ``DROPPED``.
    """
    place, bits, count = refilled(scan, place, bits, count)
    entry, value = _next_entry(tables, dc, bits)
    bits, count = bits << (entry & np.uint64(63)), count - (entry & np.uint64(255))
    spoiled = (entry >> np.uint64(_STEPS)) & np.uint64(255)
    predicted += value
    reached, last = np.uint64(0), np.uint64(63)
    put(block, start + np.uint64(at(order, reached)), predicted)
    while True:
        place, bits, count = refilled(scan, place, bits, count)
        entry, value = _next_entry(tables, ac, bits)
        ends = _put_values(entry, value, reached, block, start, order)
        if ends >= last:
            break
        reached = ends
        bits, count = bits << (entry & np.uint64(63)), count - (entry & np.uint64(255))
        # Two entries have up to 54 bits.
        entry, value = _next_entry(tables, ac, bits)
        ends = _put_values(entry, value, reached, block, start, order)
        if ends >= last:
            break
        reached = ends
        bits, count = bits << (entry & np.uint64(63)), count - (entry & np.uint64(255))
    taken = entry & np.uint64(255)
    first = reached + ((entry >> np.uint64(_STEPS)) & np.uint64(255))
    if first >= last:
        # The second code belongs to the next block.
        ends, taken = first, (entry >> np.uint64(_FIRST)) & np.uint64(255)
    return place, bits << (taken & np.uint64(63)), count - taken, predicted, ends | spoiled
