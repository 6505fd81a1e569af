"""Conversion of JPEG planes to pixels: upsampling of chroma, smoothed where it is halved, and YCbCr to RGB.

Sources: ITU-T T.871 (JFIF), section 7 (colours); the triangle filter of JPEG decoders: a chroma sample lies in the middle
of the pixels that share it. In each subsampled direction, a pixel gets three quarters of the nearest sample and one quarter of the
next nearest one. Rounding alternates between up and down.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.code_generation import Vector, types
from penstock.kernels.cpu.options import OPTIONS, inner, njit
from penstock.kernels.cpu.simd import at
from penstock.kernels.cpu.simd_integers import (
    halves,
    load,
    load_alternate,
    load_two,
    packed,
    pair_of,
    pair_products,
    put,
    rounded_product,
    store_alternate_pixels,
    store_numbers,
)

LANES = 32
"""The number of pixels converted at a time; rows must be at least as wide."""
_HALF = LANES // 2
_BITS = 16
_ONE = 1 << _BITS


def _fixed(number: float) -> int:
    return round(number * _ONE)


CONSTANTS = {
    "RED_OF_CR": _fixed(1.402) - _ONE,
    "BLUE_OF_CB": _fixed(1.772) - 2 * _ONE,
    "GREEN_OF_CB": -_fixed(0.34414),
    "GREEN_OF_CR": _ONE - _fixed(0.71414),
}
"""The constants of the GPU kernel for the same conversion. Multiples of one were subtracted from the factors so that they fit 16 bits."""

# These factors multiply twice the chroma and have one fractional bit less, so that products fit 16 bits. The results are the same for all
# chroma values.
_RED_OF_CR, _BLUE_OF_CB = math.ceil(1.402 * _ONE / 4), math.ceil(1.772 * _ONE / 4)
_GREEN = pair_of(-_fixed(0.34414) // 2, -_fixed(0.71414) // 2)
_GREEN_BITS = _BITS - 1

_SUM_BITS = 4
"""The number of fractional bits of chroma sums upsampled in both directions; sums of rows have two."""


@inner
def weigh_rows(plane: types.CPointer, near: int, far: int, width: int, sums: types.CPointer) -> None:
    """Set ``sums[1 : width + 1]`` to three times the row at ``near`` plus the row at ``far``; repeat the first and last sum beyond it."""
    for x in range(0, width, LANES):
        store_numbers(sums, 1 + x, load(plane, near + x, LANES) * 3 + load(plane, far + x, LANES))
    _repeat_ends(sums, width)


@inner
def weigh_row(plane: types.CPointer, start: int, width: int, sums: types.CPointer) -> None:
    """Set ``sums[1 : width + 1]`` to four times the row at ``start``; repeat the first and last sum beyond it."""
    for x in range(0, width, LANES):
        store_numbers(sums, 1 + x, load(plane, start + x, LANES) << 2)
    _repeat_ends(sums, width)


@njit(inline="always", **OPTIONS)
def _repeat_ends(sums: types.CPointer, width: int) -> None:
    put(sums, 0, at(sums, 1))
    put(sums, 1 + width, at(sums, width))


@njit(inline="always", **OPTIONS)
def _doubled(sums: types.CPointer, x: int, rounding: Vector) -> Vector:
    """Return the chroma, minus 128, of ``LANES`` pixels from ``x`` on, computed from sums of rows: first every other pixel, then the rest.

    A pixel's nearest chroma sample is the one at half its position; the next nearest is the one before it for even pixels, and the one
    after it for odd pixels.
    """
    odd = x & 1
    near = 1 + (x >> 1)
    own = load_two(sums, near, near + odd, _HALF)
    other = load_two(sums, near - 1 + 2 * odd, near + 1 - odd, _HALF)
    return ((own * 3 + other + rounding) >> _SUM_BITS) - 128


@njit(inline="always", **OPTIONS)
def _repeated(sums: types.CPointer, x: int) -> Vector:
    """Return the chroma, minus 128, of ``LANES`` pixels from ``x`` on, where ``sums`` are four times a row: first every other pixel, then
    the rest. Each pixel gets the sample at half its position.
    """
    near = 1 + (x >> 1)
    return (load_two(sums, near, near + (x & 1), _HALF) >> 2) - 128


@njit(inline="always", **OPTIONS)
def _store_colours(luma: Vector, blue: Vector, red: Vector, output: types.CPointer, place: int, reverse: bool) -> None:
    """Convert ``LANES`` pixels to RGB, and store them; ``blue`` and ``red`` are chroma minus 128. Vectors hold first every other pixel,
    then the rest.
    """
    reds = luma + rounded_product(red + red, _RED_OF_CR)
    blues = luma + rounded_product(blue + blue, _BLUE_OF_CB)
    greens = luma + packed((pair_products(blue, red, _GREEN) + (1 << (_GREEN_BITS - 1))) >> _GREEN_BITS)
    if reverse:
        store_alternate_pixels(output, place, (blues, greens, reds))
    else:
        store_alternate_pixels(output, place, (reds, greens, blues))


@inner
def blend_rows(planes: types.CPointer, near: int, far: int, rounding: int, width: int, place: int) -> None:
    """Compute three quarters of the row at ``near`` plus one quarter of the row at ``far``; store them from ``place`` on."""
    for x in range(width):
        value = 3 * np.int32(at(planes, near + x)) + np.int32(at(planes, far + x)) + np.int32(rounding)
        put(planes, place + x, value >> 2)


@inner
def repeat_samples(planes: types.CPointer, start: int, count: int, times: int, place: int) -> None:
    """Repeat each of ``count`` samples from ``start`` on ``times`` times, and store them from ``place`` on."""
    for x in range(count):
        for i in range(times):
            put(planes, place + times * x + i, at(planes, start + x))


@inner
def spread_row(planes: types.CPointer, luma: int, width: int, output: types.CPointer, place: int) -> None:
    """Store a row of ``width`` grey pixels, at least ``LANES``, as pixels of three equal channels."""
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        values = load_alternate(planes, luma + x, LANES)
        store_alternate_pixels(output, place + 3 * x, (values, values, values))


@inner
def convert_doubled_row(
    luma: types.CPointer,
    y: int,
    blue: types.CPointer,
    red: types.CPointer,
    first: int,
    even: int,
    odd: int,
    width: int,
    output: types.CPointer,
    place: int,
    reverse: bool,
) -> None:
    """Convert a row of ``width`` pixels, at least ``LANES``, from YCbCr to RGB; chroma has half as many columns.

    Args:
        luma: a pointer to uint8: the row begins ``y`` bytes after it.
        blue, red: pointers to the sums of rows of chroma.
        first: the column of the row's first pixel, relative to the column of the first chroma sample.
        even, odd: the rounding terms added to sums at even and odd columns.
        output: a pointer to uint8: the memory to fill, from ``place`` on.
        reverse: whether the pixels are in BGR order.
    """
    for start in range(0, width, LANES):
        # The last vector ends with the row; it converts some pixels a second time.
        x = min(start, width - LANES)
        column = first + x
        rounding = halves(odd, even, LANES) if column & 1 else halves(even, odd, LANES)
        b, r = _doubled(blue, column, rounding), _doubled(red, column, rounding)
        _store_colours(load_alternate(luma, y + x, LANES), b, r, output, place + 3 * x, reverse)


@inner
def convert_repeated_row(
    luma: types.CPointer,
    y: int,
    blue: types.CPointer,
    red: types.CPointer,
    first: int,
    width: int,
    output: types.CPointer,
    place: int,
    reverse: bool,
) -> None:
    """Convert a row like :func:`convert_doubled_row`, but repeat chroma samples; ``blue`` and ``red`` are from :func:`weigh_row`."""
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        b, r = _repeated(blue, first + x), _repeated(red, first + x)
        _store_colours(load_alternate(luma, y + x, LANES), b, r, output, place + 3 * x, reverse)


@inner
def convert_row(
    planes: types.CPointer,
    luma: int,
    blue: int,
    red: int,
    width: int,
    output: types.CPointer,
    place: int,
    reverse: bool,
) -> None:
    """Convert a row of ``width`` pixels, at least ``LANES``, from YCbCr to RGB.

    Args:
        planes: a pointer to uint8: the rows of the components begin ``luma``, ``blue`` and ``red`` bytes after it.
        output: a pointer to uint8: the memory to fill, from ``place`` on.
        reverse: whether the pixels are in BGR order.
    """
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        b, r = load_alternate(planes, blue + x, LANES) - 128, load_alternate(planes, red + x, LANES) - 128
        _store_colours(load_alternate(planes, luma + x, LANES), b, r, output, place + 3 * x, reverse)
