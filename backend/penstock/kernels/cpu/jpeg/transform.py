"""The inverse discrete cosine transform of 8x8 blocks, in integers, to 8x8 samples or fewer.

Source: C. Loeffler, A. Ligtenberg and G. Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications", ICASSP
    1989.
As in most JPEG decoders, constants have 13 fractional bits, and values between the two passes have 2 bits more than the result.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import Vector, types
from penstock.kernels.cpu.options import OPTIONS, inner, njit
from penstock.kernels.cpu.simd_integers import (
    clear,
    load,
    packed_halves,
    pair_of,
    pairs,
    store_corners,
    store_transposed,
    transposed_pairs,
    weighted_pairs,
    zeros,
    zeros_short,
)

_BITS, _BETWEEN = 13, 2
_FIRST, _SECOND = _BITS - _BETWEEN, _BITS + _BETWEEN + 3
"""The shift after each pass: together, both also divide by 8, the product of the two passes' scale factors."""
_MIDDLE = 128
IN_FOUR_ROWS = 10
"""The number of coefficients, from the first one in zig-zag order, that lie within the first four rows and columns."""


def _fixed(number: float) -> int:
    return round(number * (1 << _BITS))


_ONE = 1 << _BITS
_C0541 = _fixed(0.541196100)
_C1307, _C1306 = _C0541 + _fixed(0.765366865), _C0541 - _fixed(1.847759065)
_C0390, _C0899, _C1175 = _fixed(0.390180644), _fixed(0.899976223), _fixed(1.175875602)
_C1961, _C2562 = _fixed(1.961570560), _fixed(2.562915447)

# For each even part, the factors of rows 0 and 2, and of rows 4 and 6.
_E02 = tuple(pair_of(_ONE, factor) for factor in (_C1307, _C0541, -_C0541, -_C1307))
_E46 = pair_of(_ONE, _C0541), pair_of(-_ONE, _C1306), pair_of(-_ONE, -_C1306), pair_of(_ONE, -_C0541)
# For each odd part, the factors of rows 1, 3, 5 and 7.
_ODD = (
    (_C1175 - _C0899, _C1175 - _C1961, _C1175, _fixed(0.298631336) - _C0899 + _C1175 - _C1961),
    (_C1175 - _C0390, _C1175 - _C2562, _fixed(2.053119869) - _C2562 + _C1175 - _C0390, _C1175),
    (_C1175, _fixed(3.072711026) - _C2562 + _C1175 - _C1961, _C1175 - _C2562, _C1175 - _C1961),
    (_fixed(1.501321110) - _C0899 + _C1175 - _C0390, _C1175, _C1175 - _C0390, _C1175 - _C0899),
)
_O13 = tuple(pair_of(first, third) for first, third, _, _ in _ODD)
_O57 = tuple(pair_of(fifth, seventh) for _, _, fifth, seventh in _ODD)

CONSTANTS = {
    "FIXED_BITS": _BITS,
    "FIRST_SHIFT": _FIRST,
    "SECOND_SHIFT": _SECOND,
    "MIDDLE": _MIDDLE,
    "C0541": _C0541,
    "C1306": _C1306,
    "C1307": _C1307,
    **{f"O{part}{place}": factor for part, factors in enumerate(_ODD) for place, factor in enumerate(factors)},
}
"""The constants of the GPU kernel for the same transform."""

MAX_EXACT_BITS = 14
"""The maximum number of bits of an intermediate result, without its sign, for which decoders with 16-bit additions give the same pixels."""


# The order in which rows and columns are stored: products are computed for pairs of adjacent numbers, and if a block has few coefficients,
# they are all in the first four.
_SEQUENCE = (0, 2, 1, 3, 4, 6, 5, 7)
LANES = 16
FULL_SIZE = 8
"""The number of rows, and of columns, of samples in a block that is not reduced."""
PAIR = 128
"""The number of coefficients of two blocks."""
OTHER = LANES // 2
"""The offset of the second block of a pair."""


def _place(row: int, column: int) -> int:
    """Return the position of a coefficient of the first block of a pair.

    A vector of 16 numbers holds four columns of two rows, column by column: first those of one block, then those of the other.
    """
    rows, second = divmod(_SEQUENCE.index(row), 2)
    columns, lane = divmod(_SEQUENCE.index(column), 4)
    return (2 * rows + columns) * LANES + 2 * lane + second


PLACES = np.array([_place(*divmod(number, 8)) for number in range(64)], np.uint8)
"""The positions of the coefficients of the first block of a pair, row by row."""

# Added to the first number of each column before the second pass: the offset of all samples, plus the rounding term.
_ADDED = pair_of((_MIDDLE << _SECOND | 1 << (_SECOND - 1)) >> _BITS, 0)

_Two = tuple[Vector, Vector]
_Four = tuple[Vector, Vector, Vector, Vector]
_Eight = tuple[Vector, Vector, Vector, Vector, Vector, Vector, Vector, Vector]


@njit(inline="always", **OPTIONS)
def _joined(e: _Four, o: _Four, shift: int) -> _Eight:
    """Combine the even and odd parts of the transform, and shift the results right."""
    return (
        (e[0] + o[3]) >> shift,
        (e[1] + o[2]) >> shift,
        (e[2] + o[1]) >> shift,
        (e[3] + o[0]) >> shift,
        (e[3] - o[0]) >> shift,
        (e[2] - o[1]) >> shift,
        (e[1] - o[2]) >> shift,
        (e[0] - o[3]) >> shift,
    )


@njit(inline="always", **OPTIONS)
def _transformed(p: _Four, half: int, shift: int) -> _Eight:
    """Return the transform of eight numbers in four vectors of pairs, plus ``half``, shifted right.

    Args:
        p: the pairs of numbers 0 and 2, 1 and 3, 4 and 6, 5 and 7.
    """
    e = (
        weighted_pairs(p[0], _E02[0]) + half + weighted_pairs(p[2], _E46[0]),
        weighted_pairs(p[0], _E02[1]) + half + weighted_pairs(p[2], _E46[1]),
        weighted_pairs(p[0], _E02[2]) + half + weighted_pairs(p[2], _E46[2]),
        weighted_pairs(p[0], _E02[3]) + half + weighted_pairs(p[2], _E46[3]),
    )
    o = (
        weighted_pairs(p[1], _O13[0]) + weighted_pairs(p[3], _O57[0]),
        weighted_pairs(p[1], _O13[1]) + weighted_pairs(p[3], _O57[1]),
        weighted_pairs(p[1], _O13[2]) + weighted_pairs(p[3], _O57[2]),
        weighted_pairs(p[1], _O13[3]) + weighted_pairs(p[3], _O57[3]),
    )
    return _joined(e, o, shift)


@njit(inline="always", **OPTIONS)
def _transformed_few(p: _Two, half: int, shift: int) -> _Eight:
    """Same as :func:`_transformed`, for eight numbers of which the last four are zeros."""
    e = (
        weighted_pairs(p[0], _E02[0]) + half,
        weighted_pairs(p[0], _E02[1]) + half,
        weighted_pairs(p[0], _E02[2]) + half,
        weighted_pairs(p[0], _E02[3]) + half,
    )
    o = (
        weighted_pairs(p[1], _O13[0]),
        weighted_pairs(p[1], _O13[1]),
        weighted_pairs(p[1], _O13[2]),
        weighted_pairs(p[1], _O13[3]),
    )
    return _joined(e, o, shift)


# Transforms of eight numbers to four or two leave out high frequencies. As halving the number of results halves the scale of the
# transform, constants are doubled.
_E4 = tuple(pair_of(2 * _ONE, sign * _fixed(1.847759065)) for sign in (1, -1))
_E4_67 = tuple(pair_of(0, -sign * _fixed(0.765366865)) for sign in (1, -1))
_O4_13 = (
    pair_of(_fixed(2.562915447), _fixed(0.899976223)),
    pair_of(_fixed(1.061594337), -_fixed(2.172734803)),
)
_O4_57 = (
    pair_of(-_fixed(0.601344887), -_fixed(0.509795579)),
    pair_of(_fixed(1.451774981), -_fixed(0.211164243)),
)
_E1, _E2 = pair_of(1, 0), pair_of(2 * _ONE, 0)
_O2_13 = pair_of(_fixed(3.624509785), -_fixed(1.272758580))
_O2_57 = pair_of(_fixed(0.850430095), -_fixed(0.720959822))


@njit(inline="always", **OPTIONS)
def _to_four(p: _Four, half: int, shift: int) -> _Four:
    """Transform eight numbers in vectors of pairs to four; return these plus ``half``, shifted right."""
    e0 = weighted_pairs(p[0], _E4[0]) + half + weighted_pairs(p[2], _E4_67[0])
    e1 = weighted_pairs(p[0], _E4[1]) + half + weighted_pairs(p[2], _E4_67[1])
    o0 = weighted_pairs(p[1], _O4_13[0]) + weighted_pairs(p[3], _O4_57[0])
    o1 = weighted_pairs(p[1], _O4_13[1]) + weighted_pairs(p[3], _O4_57[1])
    return (e0 + o0) >> shift, (e1 + o1) >> shift, (e1 - o1) >> shift, (e0 - o0) >> shift


@njit(inline="always", **OPTIONS)
def _to_two(p: _Four, half: int, shift: int) -> _Two:
    """Transform eight numbers in vectors of pairs to two; return these plus ``half``, shifted right."""
    e = (weighted_pairs(p[0], _E2) << 1) + half
    o = weighted_pairs(p[1], _O2_13) + weighted_pairs(p[3], _O2_57)
    return (e + o) >> shift, (e - o) >> shift


@njit(inline="always", **OPTIONS)
def _packed(first: _Eight, second: _Eight) -> _Eight:
    """Join the results for the first four and for the last four columns (or rows) in vectors of 16 bits."""
    return (
        packed_halves(first[0], second[0]),
        packed_halves(first[1], second[1]),
        packed_halves(first[2], second[2]),
        packed_halves(first[3], second[3]),
        packed_halves(first[4], second[4]),
        packed_halves(first[5], second[5]),
        packed_halves(first[6], second[6]),
        packed_halves(first[7], second[7]),
    )


@njit(inline="always", **OPTIONS)
def _moved(rows: _Eight) -> Vector:
    """Return a vector that is negative in each lane in which one of eight numbers is out of range, as adding 2^14 shows in 16 bits.

    The results of the first pass suffice to judge this: their sum of squares is 128 times that of the coefficients.
    """
    safe = 1 << MAX_EXACT_BITS
    low = (rows[0] + safe) | (rows[1] + safe) | (rows[2] + safe) | (rows[3] + safe)
    return low | (rows[4] + safe) | (rows[5] + safe) | (rows[6] + safe) | (rows[7] + safe)


@njit(inline="always", **OPTIONS)
def _coefficients(blocks: types.CPointer, start: int, quantizers: types.CPointer, base: int) -> Vector:
    """Return a vector of dequantized coefficients, truncated to 16 bits."""
    return load(blocks, start, LANES) * load(quantizers, base, LANES)


@njit(inline="always", **OPTIONS)
def transform_low(
    c0: Vector, c2: Vector, plane: types.CPointer, place: int, stride: int, other_place: int, other_stride: int
) -> Vector:
    """Same as :func:`transform_all`, for blocks whose other coefficients are zeros."""
    half = 1 << (_FIRST - 1)
    none = zeros(8)
    few = (none, none, none, none, none, none, none, none)
    rows = _packed(_transformed_few((c0, c2), half, _FIRST), few)
    upper, lower = transposed_pairs(rows[:4]), transposed_pairs(rows[4:])
    columns = _packed(
        _transformed_few((upper[0] + pairs(_ADDED), upper[1]), 0, _SECOND),
        _transformed_few((lower[0] + pairs(_ADDED), lower[1]), 0, _SECOND),
    )
    store_transposed(plane, place, stride, other_place, other_stride, columns)
    return _moved(rows)


@njit(inline="always", **OPTIONS)
def transform_all(
    c: _Eight, plane: types.CPointer, place: int, stride: int, other_place: int, other_stride: int
) -> Vector:
    """Transform two blocks into eight rows of eight pixels each.

    Args:
        c: the dequantized coefficients, in the order of ``PLACES``.
        plane: a pointer to uint8: the memory for the pixels. The first block's rows begin at ``place`` and are ``stride`` bytes apart, the
            second block's begin at ``other_place`` and are ``other_stride`` bytes apart.

    Returns:
        A vector in which some lane is negative if an intermediate result was out of range.
    """
    half = 1 << (_FIRST - 1)
    rows = _packed(
        _transformed((c[0], c[2], c[4], c[6]), half, _FIRST),
        _transformed((c[1], c[3], c[5], c[7]), half, _FIRST),
    )
    upper, lower = transposed_pairs(rows[:4]), transposed_pairs(rows[4:])
    columns = _packed(
        _transformed((upper[0] + pairs(_ADDED), upper[1], upper[2], upper[3]), 0, _SECOND),
        _transformed((lower[0] + pairs(_ADDED), lower[1], lower[2], lower[3]), 0, _SECOND),
    )
    store_transposed(plane, place, stride, other_place, other_stride, columns)
    return _moved(rows)


@njit(inline="always", **OPTIONS)
def transform_reduced(
    c: _Eight, size: np.int64, plane: types.CPointer, place: int, stride: int, other_place: int, other_stride: int
) -> Vector:
    """Same as :func:`transform_all`, to ``size`` x ``size`` pixels for each block: 4, 2 or 1."""
    safe = 1 << MAX_EXACT_BITS
    if size == 4:
        shift = _FIRST + 1
        first, second = (
            _to_four((c[0], c[2], c[4], c[6]), 1 << (shift - 1), shift),
            _to_four((c[1], c[3], c[5], c[7]), 1 << (shift - 1), shift),
        )
        r0, r1 = packed_halves(first[0], second[0]), packed_halves(first[1], second[1])
        r2, r3 = packed_halves(first[2], second[2]), packed_halves(first[3], second[3])
        p = transposed_pairs((r0, r1, r2, r3))
        x = _to_four((p[0] + pairs(_ADDED), p[1], p[2], p[3]), 0, _SECOND + 1)
        columns = packed_halves(x[0], x[1]), packed_halves(x[2], x[3])
        store_corners(plane, place, stride, other_place, other_stride, columns, 4)
        return (r0 + safe) | (r1 + safe) | (r2 + safe) | (r3 + safe)
    if size == 2:
        shift = _FIRST + 2
        top, bottom = (
            _to_two((c[0], c[2], c[4], c[6]), 1 << (shift - 1), shift),
            _to_two((c[1], c[3], c[5], c[7]), 1 << (shift - 1), shift),
        )
        r0, r1 = packed_halves(top[0], bottom[0]), packed_halves(top[1], bottom[1])
        p = transposed_pairs((r0, r1, r0, r1))
        y = _to_two((p[0] + pairs(_ADDED), p[1], p[2], p[3]), 0, _SECOND + 2)
        both = packed_halves(y[0], y[1])
        store_corners(plane, place, stride, other_place, other_stride, (both, both), 2)
        return (r0 + safe) | (r1 + safe)
    mean = (weighted_pairs(c[0], _E1) + (1 << 2)) >> 3
    one = packed_halves(mean + _MIDDLE, mean + _MIDDLE)
    store_corners(plane, place, stride, other_place, other_stride, (one, one), 1)
    return packed_halves(mean, mean) + safe


@inner
def transform_pair(
    blocks: types.CPointer,
    start: int,
    quantizers: types.CPointer,
    base: int,
    known: np.int64,
    plane: types.CPointer,
    place: int,
    stride: int,
    other_place: int,
    other_stride: int,
    size: np.int64,
) -> Vector:
    """Dequantize and transform two blocks, as :func:`transform_all` does, and set their coefficients to zero.

    Args:
        size: the number of rows, and of columns, of pixels for each block: 8, 4, 2 or 1.
        blocks: a pointer to int16: the coefficients, in the order of ``PLACES``, from ``start`` on.
        quantizers: a pointer to int16: the quantizers of both blocks, in the same order, from ``base`` on.
        known: the number of coefficients of a block, in zig-zag order, that may be nonzero.
    """
    c0 = _coefficients(blocks, start, quantizers, base)
    c2 = _coefficients(blocks, start + 32, quantizers, base + 32)
    if known <= IN_FOUR_ROWS:
        clear(blocks, start, LANES)
        clear(blocks, start + 32, LANES)
        if size < FULL_SIZE:
            none = zeros_short(LANES)
            few = c0, none, c2, none, none, none, none, none
            return transform_reduced(few, size, plane, place, stride, other_place, other_stride)
        return transform_low(c0, c2, plane, place, stride, other_place, other_stride)
    c1 = _coefficients(blocks, start + 16, quantizers, base + 16)
    c3 = _coefficients(blocks, start + 48, quantizers, base + 48)
    c4 = _coefficients(blocks, start + 64, quantizers, base + 64)
    c5 = _coefficients(blocks, start + 80, quantizers, base + 80)
    c6 = _coefficients(blocks, start + 96, quantizers, base + 96)
    c7 = _coefficients(blocks, start + 112, quantizers, base + 112)
    clear(blocks, start, PAIR)
    eight = c0, c1, c2, c3, c4, c5, c6, c7
    if size < FULL_SIZE:
        return transform_reduced(eight, size, plane, place, stride, other_place, other_stride)
    return transform_all(eight, plane, place, stride, other_place, other_stride)
