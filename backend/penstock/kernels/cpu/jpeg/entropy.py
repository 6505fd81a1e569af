"""Entropy decoding of JPEG: Huffman codes to coefficients.

Source: ITU-T T.81, annex F.2.2 (decoding), annex C (code tables) and figure A.6 (the zig-zag sequence).

The scan's data is read as one string of bits without stuffing (:func:`copy_scan`). The next bits are the highest of a
64-bit word, ``bits``, of which ``count`` are valid; ``place`` is the position of the next byte. Bounds are not checked
while a unit is decoded: reads past the end reach the margin after the data, and the caller checks positions between
units.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.options import OPTIONS, inner, njit
from penstock.kernels.cpu.simd import at, part_of, pointer, pointer_at
from penstock.kernels.cpu.simd_integers import load_word, put, rarely

MARGIN = 4096
"""The number of bytes of padding after a scan's data. The longest unit, 6 blocks of 64 coefficients of up to 27 bits, has 1296
bytes.
"""

FULL, ENDED = 64, 128
"""The number of coefficients in a block; what an end-of-block code adds to the position reached."""


def _zig_zag(place: int) -> tuple[int, int]:
    """Return the sort key of a position in a block: by diagonals, every other one upwards."""
    row, column = divmod(place, 8)
    return row + column, row if (row + column) % 2 else column


NATURAL_ORDER = np.array(sorted(range(FULL), key=_zig_zag), np.uint8)
"""The position, row by row, of each coefficient in zig-zag order."""


def order_of(places: np.ndarray, nowhere: int) -> np.ndarray:
    """Return the order for :func:`decode_block`: where to store each coefficient in zig-zag order, and those beyond the last one.

    Args:
        places: where to store the coefficients, row by row.
        nowhere: where to store coefficients that are to be ignored.
    """
    return np.append(places[NATURAL_ORDER], np.full(ENDED + 16, nowhere)).astype(np.uint8)


# A code table: an entry for each value of the next _LOOKUP bits; an entry for each code, and one for invalid codes; for each
# code length, the first value of that many bits (extended to 16) that is not such a code; and for each code length, the position of
# a code's entry minus the code.
_LOOKUP = 10
_CODES = 1 << _LOOKUP
MAX_CODES = 256
_INVALID = _CODES + MAX_CODES
_LIMITS = _INVALID + 1
_OFFSETS = _LIMITS + 18
TABLE = _OFFSETS + 18
"""The size of a code table, in uint64."""

# The bytes of an entry: the number of bits that it covers; the number of bits in a word after its first code and that
# code's value; the number of coefficients to advance for the first code, and for both; a mask of the bits of the
# first code's value (2 bytes); and 2 more bytes: the value of the second code, if both codes and their values are within
# the _LOOKUP bits, or, for a code that ends several blocks, the number of bits after it that encode how many. A decoder
# loads each field separately, as shifts are its bottleneck, and loads are not. An entry of 0 marks a longer code.
_BITS, _REST, _STEPS, _ALL_STEPS, _MASK, _SECOND = 0, 1, 2, 3, 4, 6
_WORD = 64
LONGEST_DC, LONGEST_AC = 11, 10


def _values() -> np.ndarray:
    """Return values by their bits, with a one in front of them: bits with a leading 0 mean a negative value, which is theirs minus
    2^size - 1.
    """
    values = np.zeros(2 << LONGEST_DC, np.int16)
    for size in range(1, LONGEST_DC + 1):
        count = 1 << size
        values[count : 2 * count] = np.arange(count) - np.where(np.arange(count) < count // 2, count - 1, 0)
    return values


_VALUES = _values()


@njit(inline="always", **OPTIONS)
def _single(steps: int, length: int, size: int) -> int:
    """Return the entry of a single code that is followed by a value of ``size`` bits."""
    bits = length + size
    mask = (1 << size) - 1
    return bits | (_WORD - bits) << 8 * _REST | steps << 8 * _STEPS | steps << 8 * _ALL_STEPS | mask << 8 * _MASK


@inner
def are_codes(lengths: np.ndarray, symbols: np.ndarray, is_dc: bool, is_progressive: bool) -> bool:
    """Return whether these are valid codes of an image.

    Args:
        lengths: the number of codes of 1 to 16 bits; uint8 of shape (16,).
        symbols: the codes' symbols, in order; uint8.
        is_dc: whether symbols are sizes of values; otherwise, a number of zeros precedes the size.
        is_progressive: whether codes may end several blocks.
    """
    code, known = 0, 0
    for length in range(1, 17):
        for _ in range(lengths[length - 1]):
            if known >= min(symbols.size, MAX_CODES) or code >= 1 << length:
                return False
            zeros, size = symbols[known] >> 4, symbols[known] & 15
            if is_dc:
                if symbols[known] > LONGEST_DC:
                    return False
            elif size > LONGEST_AC or (size == 0 and zeros != 0 and zeros != 15 and not is_progressive):
                return False
            code += 1
            known += 1
        if code == 1 << length:
            return False  # A code of all ones is invalid.
        code <<= 1
    return known == symbols.size


@inner
def build_table(lengths: np.ndarray, symbols: np.ndarray, is_dc: bool, table: np.ndarray) -> None:
    """Fill a code table, uint64 of shape (TABLE,); other arguments are as for :func:`are_codes`."""
    table[:] = 0
    table[_INVALID] = _single(FULL, 17, 0)
    code, known = 0, 0
    for length in range(1, 17):
        table[_OFFSETS + length] = known - code
        for _ in range(lengths[length - 1]):
            zeros, size = np.int64(symbols[known] >> 4), np.int64(symbols[known] & 15)
            is_end = not is_dc and size == 0 and zeros < 15
            steps = 0 if is_dc else ENDED if is_end else zeros + 1
            entry = _single(steps, length, size)
            if is_end:
                entry |= zeros << 8 * _SECOND
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
    """Add the second code to entries of a table of AC codes, where their bits contain two codes with their values."""
    for looked in range(_CODES):
        first = np.int64(table[looked])
        bits, steps = _WORD - ((first >> 8 * _REST) & 255), (first >> 8 * _STEPS) & 255
        if first == 0 or bits >= _LOOKUP or steps == ENDED:
            continue
        rest = (looked << bits) & (_CODES - 1)
        second = np.int64(table[rest])
        more = _WORD - ((second >> 8 * _REST) & 255)
        ends_more = (second >> 8 * _STEPS) & 255 == ENDED and second >> 8 * _SECOND != 0
        if second == 0 or bits + more > _LOOKUP or ends_more:
            continue
        mask = (second >> 8 * _MASK) & 0xFFFF
        value = np.int64(_VALUES[((rest >> (_LOOKUP - more)) & mask) + mask + 1])
        kept = first & ~(np.int64(255) | np.int64(255) << 8 * _ALL_STEPS)
        steps += (second >> 8 * _STEPS) & 255
        table[looked] = np.uint64(kept | (bits + more) | steps << 8 * _ALL_STEPS | (value & 0xFFFF) << 8 * _SECOND)


@inner
def _long_entry(table: types.CPointer, bits: np.uint64) -> np.uint64:
    """Return the position of the entry of a code with more than ``_LOOKUP`` bits."""
    first = np.int64(bits >> np.uint64(48))
    length = np.int64(_LOOKUP + 1)
    # A loop that ended early would have an unpredictable number of iterations.
    for tried in range(_LOOKUP + 1, 17):
        length += np.int64(first >= np.int64(at(table, _LIMITS + tried)))
    known = (first >> max(16 - length, np.int64(0))) + np.int64(at(table, _OFFSETS + length))
    return np.uint64(_CODES + (known & (MAX_CODES - 1)) if length < 17 else _INVALID)


@njit(forceinline=True, **OPTIONS)
def refilled(
    scan: types.CPointer, place: np.uint64, bits: np.uint64, count: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Refill the bit buffer to at least 56 bits."""
    bits |= load_word(scan, place) >> count
    place += (np.uint64(63) - count) >> np.uint64(3)
    return place, bits, count | np.uint64(56)


@njit(forceinline=True, **OPTIONS)
def looked_up(bits: np.uint64) -> np.uint64:
    """Return the first ``_LOOKUP`` bits, the index of an entry."""
    return bits >> np.uint64(_WORD - _LOOKUP)


@njit(forceinline=True, **OPTIONS)
def read_code(table: types.CPointer, entry: np.uint64, bits: np.uint64) -> tuple[np.uint64, np.uint64, np.int64]:
    """Return the position of the entry for the next bits, the number of bits that it covers, and the value after its
    first code.

    Args:
        entry: the first ``_LOOKUP`` bits, from :func:`looked_up`.
    """
    if rarely(part_of(table, entry, _REST, 1) == 0):
        entry = _long_entry(table, bits)
    mask = part_of(table, entry, _MASK, 2)
    value = ((bits >> part_of(table, entry, _REST, 1)) & mask) + mask + np.uint64(1)
    return entry, part_of(table, entry, _BITS, 1), np.int64(at(pointer(_VALUES), value))


@njit(forceinline=True, **OPTIONS)
def put_values(
    table: types.CPointer,
    entry: np.uint64,
    value: np.int64,
    reached: np.uint64,
    block: types.CPointer,
    order: types.CPointer,
    level: int,
) -> np.uint64:
    """Put the values of an entry, shifted by ``level``, into a block; return the position reached."""
    ends = reached + part_of(table, entry, _ALL_STEPS, 1)
    # The second value first: if there is none, the first one overwrites it.
    put(block, at(order, ends), part_of(table, entry, _SECOND, 2) << np.uint64(level))
    put(block, at(order, reached + part_of(table, entry, _STEPS, 1)), value << level)
    return ends


@njit(forceinline=True, **OPTIONS)
def first_code(table: types.CPointer, entry: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Decode an entry: return the number of bits of its first code and value, the number of coefficients that these advance, a mask of the
    bits of the value, and the second value, or the number of bits that follow the code that ends blocks.
    """
    taken = np.uint64(_WORD) - part_of(table, entry, _REST, 1)
    return taken, part_of(table, entry, _STEPS, 1), part_of(table, entry, _MASK, 2), part_of(table, entry, _SECOND, 2)


@njit(forceinline=True, **OPTIONS)
def decode_block(
    scan: types.CPointer,
    place: np.uint64,
    bits: np.uint64,
    count: np.uint64,
    tables: types.CPointer,
    dc: int,
    ac: int,
    predicted: np.int64,
    block: types.CPointer,
    start: int,
    order: types.CPointer,
) -> tuple[np.uint64, np.uint64, np.uint64, np.int64, np.uint64]:
    """Decode a block; return the state of the reader, the DC coefficient, and the position reached.

    The position is 63 if the last coefficient was decoded; an end-of-block code adds ``ENDED`` to the last position before it. The bit
    ``FULL`` is set if the block is invalid.

    The next code is looked up in the remaining bits while these are refilled, so that it does not wait for the refill. The
    bits also suffice to look up the first code of the next block: a word has 64 bits after it is refilled, of which at most two codes
    with their values are consumed, up to 53.

    Args:
        scan, tables, block, order: pointers.
        bits: the bit buffer, with at least ``_LOOKUP`` bits, from an earlier block or :func:`refilled`.
        tables: the code tables, of which those at ``dc`` and ``ac`` are used.
        predicted: the DC coefficient of the component's previous block.
        block: receives the coefficients, from ``start`` on; int16, zeroed.
        order: the order from :func:`order_of`.
    """
    codes, block = pointer_at(tables, dc), pointer_at(block, start)
    first_bits = looked_up(bits)
    place, bits, count = refilled(scan, place, bits, count)
    entry, taken, value = read_code(codes, first_bits, bits)
    bits, count = bits << taken, count - taken
    spoiled = part_of(codes, entry, _STEPS, 1)
    predicted += value
    reached, last = np.uint64(0), np.uint64(63)
    put(block, at(order, reached), predicted)
    codes = pointer_at(tables, ac)
    while True:
        entry, taken, value = read_code(codes, looked_up(bits), bits)
        ends = put_values(codes, entry, value, reached, block, order, 0)
        if ends >= last:
            break
        reached = ends
        bits, count = bits << taken, count - taken
        first_bits = looked_up(bits)
        place, bits, count = refilled(scan, place, bits, count)
        entry, taken, value = read_code(codes, first_bits, bits)
        ends = put_values(codes, entry, value, reached, block, order, 0)
        if ends >= last:
            break
        reached = ends
        bits, count = bits << taken, count - taken
    first = reached + part_of(codes, entry, _STEPS, 1)
    # Both differences are negative if last <= first < ends; comparing them at once avoids an unpredictable branch.
    if rarely(np.int64((last - np.uint64(1) - first) & (first - ends)) < 0):
        # The second code belongs to the next block.
        ends, taken = first, np.uint64(_WORD) - part_of(codes, entry, _REST, 1)
    return place, bits << taken, count - taken, predicted, ends | spoiled
