"""The inverse discrete cosine transform of 8x8 blocks, in integers.

Source: C. Loeffler, A. Ligtenberg and G. Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications", ICASSP
    1989.
Constants have 13 bits, and values between the two passes 2 bits more than the result, like in most JPEG decoders.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from penstock.kernels.cpu.code_generation import Vector
from penstock.kernels.cpu.options import OPTIONS, inner
from penstock.kernels.cpu.simd_integers import (
    clear,
    load_two,
    packed,
    pair_of,
    pair_products,
    store_two,
    transposed_pair,
)

_BITS, _BETWEEN = 13, 2
_FIRST, _SECOND = _BITS - _BETWEEN, _BITS + _BETWEEN + 3
"""The shift after each pass: two factors of the square root of 8 are divided out at the end."""
_MIDDLE = 128
_IN_FOUR_ROWS = 10


def _fixed(number: float) -> int:
    return round(number * (1 << _BITS))


_ONE = 1 << _BITS
_C0541 = _fixed(0.541196100)
_C1307, _C1306 = _C0541 + _fixed(0.765366865), _C0541 - _fixed(1.847759065)
_C0390, _C0899, _C1175 = _fixed(0.390180644), _fixed(0.899976223), _fixed(1.175875602)
_C1961, _C2562 = _fixed(1.961570560), _fixed(2.562915447)

# Factors of rows 0 and 4, and of 2 and 6, for the even parts.
_E04, _E04_BELOW = pair_of(_ONE, _ONE), pair_of(_ONE, -_ONE)
_E26, _E26_BELOW = pair_of(_C1307, _C0541), pair_of(_C0541, _C1306)
# Of rows 0 and 2, where there are no others.
_E02, _E02_NEXT, _E02_THIRD, _E02_LAST = (pair_of(_ONE, factor) for factor in (_C1307, _C0541, -_C0541, -_C1307))
# For each odd part, the factors of rows 1, 3, 5 and 7.
_ODD = (
    (_C1175 - _C0899, _C1175 - _C1961, _C1175, _fixed(0.298631336) - _C0899 + _C1175 - _C1961),
    (_C1175 - _C0390, _C1175 - _C2562, _fixed(2.053119869) - _C2562 + _C1175 - _C0390, _C1175),
    (_C1175, _fixed(3.072711026) - _C2562 + _C1175 - _C1961, _C1175 - _C2562, _C1175 - _C1961),
    (_fixed(1.501321110) - _C0899 + _C1175 - _C0390, _C1175, _C1175 - _C0390, _C1175 - _C0899),
)
_O17 = tuple(pair_of(first, seventh) for first, _, _, seventh in _ODD)
_O35 = tuple(pair_of(third, fifth) for _, third, fifth, _ in _ODD)
_O13 = tuple(pair_of(first, third) for first, third, _, _ in _ODD)

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
"""For a GPU's kernel of the same."""

SAFE = 14
"""Decoders that add 16-bit numbers agree as long as none has more bits than this, plus a sign."""


_Four = tuple[Vector, Vector, Vector, Vector]
_Eight = tuple[Vector, Vector, Vector, Vector, Vector, Vector, Vector, Vector]


@njit(inline="always", **OPTIONS)
def _joined(e: _Four, o: _Four, shift: int) -> _Eight:
    """Combines the even and odd parts of the transform, shifted."""
    return (
        packed((e[0] + o[3]) >> shift),
        packed((e[1] + o[2]) >> shift),
        packed((e[2] + o[1]) >> shift),
        packed((e[3] + o[0]) >> shift),
        packed((e[3] - o[0]) >> shift),
        packed((e[2] - o[1]) >> shift),
        packed((e[1] - o[2]) >> shift),
        packed((e[0] - o[3]) >> shift),
    )


@njit(inline="always", **OPTIONS)
def _transformed(c: _Eight, shift: int, added: int) -> _Eight:
    """The transform of eight vectors, lane by lane, shifted and rounded, plus a constant."""
    half = (1 << (shift - 1)) + (added << shift)
    t0 = pair_products(c[0], c[4], _E04) + half
    t1 = pair_products(c[0], c[4], _E04_BELOW) + half
    t2 = pair_products(c[2], c[6], _E26_BELOW)
    t3 = pair_products(c[2], c[6], _E26)
    o0 = pair_products(c[1], c[7], _O17[0]) + pair_products(c[3], c[5], _O35[0])
    o1 = pair_products(c[1], c[7], _O17[1]) + pair_products(c[3], c[5], _O35[1])
    o2 = pair_products(c[1], c[7], _O17[2]) + pair_products(c[3], c[5], _O35[2])
    o3 = pair_products(c[1], c[7], _O17[3]) + pair_products(c[3], c[5], _O35[3])
    return _joined((t0 + t3, t1 + t2, t1 - t2, t0 - t3), (o0, o1, o2, o3), shift)


@njit(inline="always", **OPTIONS)
def _transformed_few(c: _Four, shift: int, added: int) -> _Eight:
    """The same for four vectors followed by zeros."""
    half = (1 << (shift - 1)) + (added << shift)
    e0 = pair_products(c[0], c[2], _E02) + half
    e1 = pair_products(c[0], c[2], _E02_NEXT) + half
    e2 = pair_products(c[0], c[2], _E02_THIRD) + half
    e3 = pair_products(c[0], c[2], _E02_LAST) + half
    o0, o1 = pair_products(c[1], c[3], _O13[0]), pair_products(c[1], c[3], _O13[1])
    o2, o3 = pair_products(c[1], c[3], _O13[2]), pair_products(c[1], c[3], _O13[3])
    return _joined((e0, e1, e2, e3), (o0, o1, o2, o3), shift)


@njit(inline="always", **OPTIONS)
def _moved(c: _Eight) -> Vector:
    """The bits set in any of eight vectors, shifted by the safe ones: negative if one is out of range."""
    safe = 1 << SAFE
    low = (c[0] + safe) | (c[1] + safe) | (c[2] + safe) | (c[3] + safe)
    return low | (c[4] + safe) | (c[5] + safe) | (c[6] + safe) | (c[7] + safe)


@njit(inline="always", **OPTIONS)
def _coefficients(
    blocks: types.CPointer, start: int, other: int, quantizers: types.CPointer, base: int, other_base: int
) -> Vector:
    """A row of dequantized coefficients of each block, truncated to 16 bits."""
    return load_two(blocks, start, other, 8) * load_two(quantizers, base, other_base, 8)


@inner
def transform_blocks(
    blocks: types.CPointer,
    start: int,
    other: int,
    quantizers: types.CPointer,
    base: int,
    other_base: int,
    known: np.int64,
    plane: types.CPointer,
    place: int,
    stride: int,
    other_place: int,
    other_stride: int,
) -> Vector:
    """Dequantizes and transforms two blocks into eight rows of eight pixels each, and clears them.

    Args:
        blocks: a pointer to int16; the coefficients in rows, from ``start`` and ``other`` on.
        quantizers: a pointer to int16; their factors in rows, from ``base`` and ``other_base`` on.
        known: how many coefficients of a block, in zig-zag order, may be nonzero.
        plane: a pointer to uint8, which receives the pixels: the first rows at ``place`` and ``other_place``, then one
            every ``stride`` and ``other_stride``.

    Returns:
        A vector with a negative number if an intermediate result was out of range.
    """
    c0 = _coefficients(blocks, start, other, quantizers, base, other_base)
    c1 = _coefficients(blocks, start + 8, other + 8, quantizers, base + 8, other_base + 8)
    c2 = _coefficients(blocks, start + 16, other + 16, quantizers, base + 16, other_base + 16)
    c3 = _coefficients(blocks, start + 24, other + 24, quantizers, base + 24, other_base + 24)
    clear(blocks, start, 32)
    clear(blocks, other, 32)
    if known <= _IN_FOUR_ROWS:
        rows = _transformed_few((c0, c1, c2, c3), _FIRST, 0)
        columns = transposed_pair(rows)
        pixels = transposed_pair(_transformed_few(columns[:4], _SECOND, _MIDDLE))
        store_two(plane, place, stride, other_place, other_stride, pixels)
        return _moved((c0, c1, c2, c3, c0, c1, c2, c3)) | _moved(rows)
    c4 = _coefficients(blocks, start + 32, other + 32, quantizers, base + 32, other_base + 32)
    c5 = _coefficients(blocks, start + 40, other + 40, quantizers, base + 40, other_base + 40)
    c6 = _coefficients(blocks, start + 48, other + 48, quantizers, base + 48, other_base + 48)
    c7 = _coefficients(blocks, start + 56, other + 56, quantizers, base + 56, other_base + 56)
    clear(blocks, start + 32, 32)
    clear(blocks, other + 32, 32)
    coefficients = (c0, c1, c2, c3, c4, c5, c6, c7)
    rows = _transformed(coefficients, _FIRST, 0)
    pixels = transposed_pair(_transformed(transposed_pair(rows), _SECOND, _MIDDLE))
    store_two(plane, place, stride, other_place, other_stride, pixels)
    return _moved(coefficients) | _moved(rows)
