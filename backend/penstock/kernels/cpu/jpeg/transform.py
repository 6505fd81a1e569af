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
from penstock.kernels.cpu.simd import at, transposed
from penstock.kernels.cpu.simd_integers import load, store_rows, widened, zeros

_BITS, _BETWEEN = 13, 2
_FIRST, _SECOND = _BITS - _BETWEEN, _BITS + _BETWEEN + 3
"""The shift after each pass: two factors of the square root of 8 are divided out at the end."""
_MIDDLE = 128
_IN_FOUR_ROWS = 10


def _fixed(number: float) -> int:
    return round(number * (1 << _BITS))


_C0298, _C0390, _C0541, _C0765 = _fixed(0.298631336), _fixed(0.390180644), _fixed(0.541196100), _fixed(0.765366865)
_C0899, _C1175, _C1501, _C1847 = _fixed(0.899976223), _fixed(1.175875602), _fixed(1.501321110), _fixed(1.847759065)
_C1961, _C2053, _C2562, _C3072 = _fixed(1.961570560), _fixed(2.053119869), _fixed(2.562915447), _fixed(3.072711026)

SAFE = 14
"""Decoders that add 16-bit numbers agree as long as none has more bits than this, plus a sign."""


_Four = tuple[Vector, Vector, Vector, Vector]
_Eight = tuple[Vector, Vector, Vector, Vector, Vector, Vector, Vector, Vector]


@njit(inline="always", **OPTIONS)
def _joined(e: _Four, o: _Four, shift: int) -> _Eight:
    """Combines the even and odd parts of the transform, shifted."""
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
def _transformed(c: _Eight, shift: int, added: int) -> _Eight:
    """The transform of eight vectors, lane by lane, shifted and rounded, plus a constant."""
    half = (1 << (shift - 1)) + (added << shift)
    shared = (c[2] + c[6]) * _C0541
    t2 = shared - c[6] * _C1847
    t3 = shared + c[2] * _C0765
    t0 = ((c[0] + c[4]) << _BITS) + half
    t1 = ((c[0] - c[4]) << _BITS) + half
    e0, e1, e2, e3 = t0 + t3, t1 + t2, t1 - t2, t0 - t3

    p71, p53, p73, p51 = c[7] + c[1], c[5] + c[3], c[7] + c[3], c[5] + c[1]
    all_odd = (p73 + p51) * _C1175
    p71, p53 = p71 * _C0899, p53 * _C2562
    p73, p51 = all_odd - p73 * _C1961, all_odd - p51 * _C0390
    o0 = c[7] * _C0298 - p71 + p73
    o1 = c[5] * _C2053 - p53 + p51
    o2 = c[3] * _C3072 - p53 + p73
    o3 = c[1] * _C1501 - p71 + p51
    return _joined((e0, e1, e2, e3), (o0, o1, o2, o3), shift)


@njit(inline="always", **OPTIONS)
def _transformed_few(c: _Four, shift: int, added: int) -> _Eight:
    """The same for four vectors followed by zeros."""
    half = (1 << (shift - 1)) + (added << shift)
    t2, t3 = c[2] * _C0541, c[2] * (_C0541 + _C0765)
    t0 = (c[0] << _BITS) + half
    e0, e1, e2, e3 = t0 + t3, t0 + t2, t0 - t2, t0 - t3
    o0 = c[1] * (_C1175 - _C0899) + c[3] * (_C1175 - _C1961)
    o1 = c[1] * (_C1175 - _C0390) + c[3] * (_C1175 - _C2562)
    o2 = c[1] * _C1175 + c[3] * (_C1175 - _C1961 + _C3072 - _C2562)
    o3 = c[1] * (_C1175 - _C0390 + _C1501 - _C0899) + c[3] * _C1175
    return _joined((e0, e1, e2, e3), (o0, o1, o2, o3), shift)


@njit(inline="always", **OPTIONS)
def _moved(c: _Eight) -> Vector:
    """The bits set in any of eight vectors, shifted by the safe ones: nonzero if one is out of range."""
    safe = 1 << SAFE
    low = (c[0] + safe) | (c[1] + safe) | (c[2] + safe) | (c[3] + safe)
    return low | (c[4] + safe) | (c[5] + safe) | (c[6] + safe) | (c[7] + safe)


@njit(inline="always", **OPTIONS)
def _coefficients(block: types.CPointer, start: int, quantizer: types.CPointer, base: int) -> Vector:
    """A row of dequantized coefficients, truncated to 16 bits."""
    return widened(load(block, start, 8) * load(quantizer, base, 8))


@inner
def transform_block(
    block: types.CPointer,
    start: int,
    quantizer: types.CPointer,
    base: int,
    known: int,
    plane: types.CPointer,
    place: int,
    stride: int,
) -> Vector:
    """Dequantizes and transforms a block into eight rows of eight pixels.

    Args:
        block: a pointer to int16; the coefficients in rows, from ``start`` on.
        quantizer: a pointer to int16; their factors in rows, from ``base`` on.
        known: how many coefficients, in zig-zag order, may be nonzero.
        plane: a pointer to uint8, which receives the pixels: the first row at ``place``, then one every ``stride``.

    Returns:
        A vector with bits above ``SAFE`` + 1 if an intermediate result was out of range.
    """
    none = zeros(8)
    if known == 1:
        level = np.int64(np.int16(at(block, start) * at(quantizer, base))) << _BETWEEN
        half = 1 << (_BETWEEN + 2)
        row = none + (((level + half) >> (_BETWEEN + 3)) + _MIDDLE)
        store_rows(plane, place, stride, (row, row, row, row, row, row, row, row))
        return none + (level + (1 << SAFE))
    c0 = _coefficients(block, start, quantizer, base)
    c1 = _coefficients(block, start + 8, quantizer, base + 8)
    c2 = _coefficients(block, start + 16, quantizer, base + 16)
    c3 = _coefficients(block, start + 24, quantizer, base + 24)
    if known <= _IN_FOUR_ROWS:
        rows = _transformed_few((c0, c1, c2, c3), _FIRST, 0)
        columns = transposed(rows)
        store_rows(plane, place, stride, transposed(_transformed_few(columns[:4], _SECOND, _MIDDLE)))
        return _moved((c0, c1, c2, c3, c0, c1, c2, c3)) | _moved(rows)
    c4 = _coefficients(block, start + 32, quantizer, base + 32)
    c5 = _coefficients(block, start + 40, quantizer, base + 40)
    c6 = _coefficients(block, start + 48, quantizer, base + 48)
    c7 = _coefficients(block, start + 56, quantizer, base + 56)
    coefficients = (c0, c1, c2, c3, c4, c5, c6, c7)
    rows = _transformed(coefficients, _FIRST, 0)
    store_rows(plane, place, stride, transposed(_transformed(transposed(rows), _SECOND, _MIDDLE)))
    return _moved(coefficients) | _moved(rows)
