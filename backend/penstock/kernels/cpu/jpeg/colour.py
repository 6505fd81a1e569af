"""From the planes of a JPEG to pixels: smooth upsampling of subsampled chroma, and YCbCr to RGB.

Sources: ITU-T T.871 (JFIF), section 7 (colours); the triangle filter of JPEG decoders: a chroma sample is centred
between its pixels, each of which gets three quarters of the nearest sample and one quarter of the next, in each
subsampled direction. Rounding alternates between up and down.
"""

from __future__ import annotations

from numba import njit, types

from penstock.kernels.cpu.code_generation import Vector
from penstock.kernels.cpu.options import OPTIONS, inner
from penstock.kernels.cpu.simd import at
from penstock.kernels.cpu.simd_integers import (
    high_product,
    load,
    packed,
    pair_of,
    pair_products,
    put,
    store_numbers,
    store_pixels,
)

LANES = 32
"""Pixels converted at a time; no row is narrower."""

_BITS = 16
_ONE = 1 << _BITS


def _fixed(number: float) -> int:
    return round(number * _ONE)


# Without the whole numbers that 16 bits cannot hold: those are added apart.
_RED_OF_CR, _BLUE_OF_CB = _fixed(1.402) - _ONE, _fixed(1.772) - 2 * _ONE
_GREEN_OF_CB, _GREEN_OF_CR = -_fixed(0.34414), _ONE - _fixed(0.71414)
_GREEN = pair_of(_GREEN_OF_CB, _GREEN_OF_CR)
CONSTANTS = {
    "RED_OF_CR": _RED_OF_CR,
    "BLUE_OF_CB": _BLUE_OF_CB,
    "GREEN_OF_CB": _GREEN_OF_CB,
    "GREEN_OF_CR": _GREEN_OF_CR,
}
"""For a GPU's kernel of the same."""


@inner
def weigh_rows(plane: types.CPointer, near: int, far: int, width: int, sums: types.CPointer) -> None:
    """``sums[1 : width + 1]``: three times the row starting at ``near``, plus the one at ``far``; ends repeated."""
    for x in range(0, width, LANES):
        store_numbers(sums, 1 + x, load(plane, near + x, LANES) * 3 + load(plane, far + x, LANES))
    _repeat_ends(sums, width)


@inner
def copy_row(plane: types.CPointer, start: int, width: int, sums: types.CPointer) -> None:
    """``sums[1 : width + 1]``: the row starting at ``start``; ends repeated."""
    for x in range(0, width, LANES):
        store_numbers(sums, 1 + x, load(plane, start + x, LANES))
    _repeat_ends(sums, width)


@njit(inline="always", **OPTIONS)
def _repeat_ends(sums: types.CPointer, width: int) -> None:
    put(sums, 0, at(sums, 1))
    put(sums, 1 + width, at(sums, width))


@inner
def double_row(sums: types.CPointer, width: int, shift: int, even: int, odd: int, row: types.CPointer) -> None:
    """Fills ``row`` with two samples for each of the ``width`` sums, padded to whole vectors.

    Args:
        shift: divides them.
        even, odd: added before, for rounding.
    """
    for x in range(0, width, LANES):
        thrice = load(sums, 1 + x, LANES) * 3
        left, right = load(sums, x, LANES), load(sums, 2 + x, LANES)
        # Two bytes are a number of 16 bits.
        store_numbers(row, 2 * x, ((thrice + left + even) >> shift) | (((thrice + right + odd) >> shift) << 8))


@njit(inline="always", **OPTIONS)
def _scaled(values: Vector, factor: int) -> Vector:
    """``values * factor / 65536``, rounded, for a 16-bit factor: via halves of the high bits of the product."""
    return (high_product(values + values, factor) + 1) >> 1


@inner
def convert_row(
    luma: types.CPointer,
    y: int,
    blue: types.CPointer,
    cb: int,
    red: types.CPointer,
    cr: int,
    width: int,
    output: types.CPointer,
    place: int,
    reverse: bool,
) -> None:
    """Converts a row of ``width`` pixels, at least ``LANES``, from YCbCr to RGB.

    Args:
        luma, blue, red: pointers to uint8, after which the row begins at ``y``, ``cb`` and ``cr``.
        output: a pointer to uint8, which receives the pixels from ``place`` on.
        reverse: in BGR order.
    """
    for start in range(0, width, LANES):
        # The last vector ends with the row, repeating some pixels.
        x = min(start, width - LANES)
        luminance = load(luma, y + x, LANES)
        b, r = load(blue, cb + x, LANES) - 128, load(red, cr + x, LANES) - 128
        reds = luminance + r + _scaled(r, _RED_OF_CR)
        blues = luminance + b + b + _scaled(b, _BLUE_OF_CB)
        both = pair_products(b, r, _GREEN) + _ONE // 2
        greens = luminance - r + packed(both >> _BITS)
        if reverse:
            store_pixels(output, place + 3 * x, (blues, greens, reds))
        else:
            store_pixels(output, place + 3 * x, (reds, greens, blues))
