"""From the planes of a JPEG to pixels: smooth upsampling of subsampled chroma, and YCbCr to RGB.

Sources: ITU-T T.871 (JFIF), section 7 (colours); the triangle filter of JPEG decoders: a chroma sample is centred
between its pixels, each of which gets three quarters of the nearest sample and one quarter of the next, in each
subsampled direction. Rounding alternates between up and down.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from penstock.kernels.cpu.simd_integers import (
    high_product,
    load,
    narrowed,
    store_numbers,
    store_pixels,
    widened,
)

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}

LANES = 32
"""Pixels converted at a time; no row is narrower."""

_BITS = 16
_ONE = 1 << _BITS


def _fixed(number: float) -> int:
    return round(number * _ONE)


_RED_OF_CR, _GREEN_OF_CB, _GREEN_OF_CR, _BLUE_OF_CB = _fixed(1.402), _fixed(0.34414), _fixed(0.71414), _fixed(1.772)


@njit(**_OPTIONS)
def weigh_rows(plane, near, far, width, sums):  # type: ignore[no-untyped-def]
    """``sums[1 : width + 1]``: three times the row starting at ``near``, plus the one at ``far``; ends repeated."""
    for x in range(0, width, LANES):
        store_numbers(sums, 1 + x, load(plane, near + x, LANES) * 3 + load(plane, far + x, LANES))
    _repeat_ends(sums, width)


@njit(**_OPTIONS)
def copy_row(plane, start, width, sums):  # type: ignore[no-untyped-def]
    """``sums[1 : width + 1]``: the row starting at ``start``; ends repeated."""
    for x in range(0, width, LANES):
        store_numbers(sums, 1 + x, load(plane, start + x, LANES))
    _repeat_ends(sums, width)


@njit(inline="always", **_OPTIONS)
def _repeat_ends(sums, width):  # type: ignore[no-untyped-def]
    sums[0] = sums[1]
    sums[1 + width] = sums[width]


@njit(**_OPTIONS)
def double_row(sums, width, shift, even, odd, row):  # type: ignore[no-untyped-def]
    """Fills ``row`` with two samples for each of the ``width`` sums, padded to whole vectors.

    Args:
        shift: divides them.
        even, odd: added before, for rounding.
    """
    for x in range(0, width, LANES):
        thrice = load(sums, 1 + x, LANES) * 3
        left, right = load(sums, x, LANES), load(sums, 2 + x, LANES)
        store_pixels(row, 2 * x, ((thrice + left + even) >> shift, (thrice + right + odd) >> shift))


@njit(inline="always", **_OPTIONS)
def _scaled(values, factor):  # type: ignore[no-untyped-def]
    """``values * factor / 65536``, rounded, for a 16-bit factor: via halves of the high bits of the product."""
    return (high_product(values + values, factor) + 1) >> 1


@njit(**_OPTIONS)
def convert_row(luma, y, blue, cb, red, cr, width, output, place, reverse):  # type: ignore[no-untyped-def]
    """Converts a row of ``width`` pixels, at least ``LANES``, from YCbCr to RGB.

    Args:
        luma, blue, red: arrays in which the row begins at ``y``, ``cb`` and ``cr``; uint8.
        output: receives the pixels, from ``place`` on; uint8.
        reverse: in BGR order.
    """
    for start in range(0, width, LANES):
        # The last vector ends with the row, repeating some pixels.
        x = min(start, width - LANES)
        luminance = load(luma, y + x, LANES)
        b, r = load(blue, cb + x, LANES) - 128, load(red, cr + x, LANES) - 128
        # Factors without the whole numbers that 16 bits cannot hold.
        reds = luminance + r + _scaled(r, _RED_OF_CR - _ONE)
        blues = luminance + b + b + _scaled(b, _BLUE_OF_CB - 2 * _ONE)
        both = widened(b) * -_GREEN_OF_CB + widened(r) * (_ONE - _GREEN_OF_CR) + _ONE // 2
        greens = luminance - r + narrowed(both >> _BITS)
        if reverse:
            store_pixels(output, place + 3 * x, (blues, greens, reds))
        else:
            store_pixels(output, place + 3 * x, (reds, greens, blues))
