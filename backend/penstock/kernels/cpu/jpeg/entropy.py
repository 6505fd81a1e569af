"""Entropy decoding of JPEG: Huffman codes to coefficients.

Source: ITU-T T.81, annex F.2.2 (decoding), annex C (code tables) and figure A.6 (the zig-zag sequence).

The scan's data is read as one string of bits without stuffing (:func:`copy_scan`). The next bits are the highest of a
64-bit word, ``bits``, of which ``count`` are valid; ``place`` is the position of the next byte. Bounds are not checked
while a unit is decoded: reads past the end reach the margin after the data, and the caller checks the position after each
unit.
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
"""The number of coefficients in a block; the number that an end-of-block code adds to the position of the last coefficient."""


def _zig_zag(place: int) -> tuple[int, int]:
    """Return the key that sorts positions in a block in zig-zag order: diagonal by diagonal, every other one upwards."""
    row, column = divmod(place, 8)
    return row + column, row if (row + column) % 2 else column


NATURAL_ORDER = np.array(sorted(range(FULL), key=_zig_zag), np.uint8)
"""The position, row by row, of each coefficient in zig-zag order."""


def order_of(places: np.ndarray, nowhere: int) -> np.ndarray:
    """Return the ``order`` for :func:`decode_block`: the position at which to store each coefficient, in zig-zag order, and all beyond
    the last one.

    Args:
        places: the positions at which to store the coefficients, row by row.
        nowhere: the position at which to store coefficients beyond the last one, which are ignored.
    """
    return np.append(places[NATURAL_ORDER], np.full(ENDED + 16, nowhere)).astype(np.uint8)


# A code table has an entry for each value of the next _LOOKUP bits; an entry for each code, and one for invalid codes; for each code
# length, the first value (extended to 16 bits) above all codes of that length; and for each code length, the difference between the number
# of a code's entry and the code.
_LOOKUP = 10
_CODES = 1 << _LOOKUP
MAX_CODES = 256
_INVALID = _CODES + MAX_CODES
_LIMITS = _INVALID + 1
_OFFSETS = _LIMITS + 18
TABLE = _OFFSETS + 18
"""The size of a code table, in uint64."""

# The bytes of an entry:
# - the number of bits that the entry covers;
# - the number of bits of a 64-bit word that are left after the first code and its value;
# - the number of coefficients to advance for the first code;
# - the number of coefficients to advance for both codes;
# - a mask of the bits of the first code's value (2 bytes);
# - the value of the second code, if both codes and their values are within the _LOOKUP bits; or, for a code that ends several blocks, the
#   number of bits after it that encode how many (2 bytes).
# The decoder loads each field separately, because shifts are its bottleneck, and loads are not. An entry of 0 marks a longer code.
_BITS, _REST, _STEPS, _ALL_STEPS, _MASK, _SECOND = 0, 1, 2, 3, 4, 6
_WORD = 64
LONGEST_DC, LONGEST_AC = 11, 10


def _values() -> np.ndarray:
    """Return a table of values; the index is a one followed by a value's bits. Bits that begin with 0 encode a negative value: as a
    number, they are 2^size - 1 greater than the value.
    """
    values = np.zeros(2 << LONGEST_DC, np.int16)
    for size in range(1, LONGEST_DC + 1):
        count = 1 << size
        values[count : 2 * count] = np.arange(count) - np.where(np.arange(count) < count // 2, count - 1, 0)
    return values


_VALUES = _values()


@njit(inline="always", **OPTIONS)
def _single(steps: int, length: int, size: int) -> int:
    """Return the entry of a single code of ``length`` bits that is followed by a value of ``size`` bits."""
    bits = length + size
    mask = (1 << size) - 1
    return bits | (_WORD - bits) << 8 * _REST | steps << 8 * _STEPS | steps << 8 * _ALL_STEPS | mask << 8 * _MASK


@inner
def are_codes(lengths: np.ndarray, symbols: np.ndarray, is_dc: bool, is_progressive: bool) -> bool:
    """Return whether a table of an image defines valid codes.

    Args:
        lengths: the number of codes of each length from 1 to 16 bits; uint8 of shape (16,).
        symbols: the codes' symbols, in order; uint8.
        is_dc: whether a symbol is the size of a value; otherwise, it is a number of zeros (high four bits) and a size.
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
            return False  # a code of all ones is invalid
        code <<= 1
    return known == symbols.size


@inner
def build_table(lengths: np.ndarray, symbols: np.ndarray, is_dc: bool, table: np.ndarray) -> None:
    """Fill ``table``, a code table of uint64 of shape (TABLE,); other arguments are as for :func:`are_codes`."""
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
    """Add a second code to the entries of a table of AC codes whose ``_LOOKUP`` bits contain two codes with their values."""
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
    # The loop does not end early: the processor could not predict the number of iterations.
    for tried in range(_LOOKUP + 1, 17):
        length += np.int64(first >= np.int64(at(table, _LIMITS + tried)))
    known = (first >> max(16 - length, np.int64(0))) + np.int64(at(table, _OFFSETS + length))
    return np.uint64(_CODES + (known & (MAX_CODES - 1)) if length < 17 else _INVALID)


@njit(forceinline=True, **OPTIONS)
def refilled(
    scan: types.CPointer, place: np.uint64, bits: np.uint64, count: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Refill the bit buffer to at least 56 bits; return ``place``, ``bits`` and ``count`` (see above)."""
    bits |= load_word(scan, place) >> count
    place += (np.uint64(63) - count) >> np.uint64(3)
    return place, bits, count | np.uint64(56)


@njit(forceinline=True, **OPTIONS)
def looked_up(bits: np.uint64) -> np.uint64:
    """Return the first ``_LOOKUP`` bits, the index of an entry."""
    return bits >> np.uint64(_WORD - _LOOKUP)


@njit(forceinline=True, **OPTIONS)
def read_code(table: types.CPointer, entry: np.uint64, bits: np.uint64) -> tuple[np.uint64, np.uint64, np.int64]:
    """Return the position of the entry for the next bits, the number of bits that the entry covers, and the value after the
    entry's first code.

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
    """Store the values of an entry, shifted left by ``level``, in a block; return the position of the last coefficient.

    ``reached`` is the position of the last coefficient before, ``value`` the value after the entry's first code.
    """
    ends = reached + part_of(table, entry, _ALL_STEPS, 1)
    # The second value is stored first: if there is none, the first value is stored in the same position and overwrites it.
    put(block, at(order, ends), part_of(table, entry, _SECOND, 2) << np.uint64(level))
    put(block, at(order, reached + part_of(table, entry, _STEPS, 1)), value << level)
    return ends


@njit(forceinline=True, **OPTIONS)
def first_code(table: types.CPointer, entry: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return, for an entry: the number of bits of its first code and value, the number of coefficients to advance for that code, a mask of
    the bits of the value, and the second value or, for a code that ends several blocks, the number of bits that encode how many.
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
    """Decode a block; return ``place``, ``bits`` and ``count`` after it, the DC coefficient, and the position of the last coefficient.

    That position is 63 if the block is complete; an end-of-block code adds ``ENDED`` to the position before it. The bit
    ``FULL`` is set if the block is invalid.

    Each code is looked up in the bits that are left while the buffer is refilled, so that the lookup does not wait for the refill. The
    bits that are left also suffice to look up the first code of the next block: a refilled word has 64 bits, and at most two codes
    with their values, up to 53 bits, are consumed before the next refill.

    Args:
        scan, tables, block, order: pointers.
        bits: the bit buffer, with at least ``_LOOKUP`` valid bits, returned for the previous block or by :func:`refilled`.
        tables: the code tables; the block's are at the offsets ``dc`` and ``ac``.
        predicted: the DC coefficient of the component's previous block.
        block: filled with the nonzero coefficients, from ``start`` on; int16, zeroed by the caller.
        order: from :func:`order_of`.
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
    # Both differences are negative if last <= first < ends. Testing both with one comparison avoids an unpredictable branch.
    if rarely(np.int64((last - np.uint64(1) - first) & (first - ends)) < 0):
        # The second code belongs to the next block, so only the first one is consumed here.
        ends, taken = first, np.uint64(_WORD) - part_of(codes, entry, _REST, 1)
    return place, bits << taken, count - taken, predicted, ends | spoiled
