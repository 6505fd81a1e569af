"""Values of pixels by tables of their channels, on CPU."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from penstock.kernels.cpu.code_generation import Vector
from penstock.kernels.cpu.options import OPTIONS, inner, kernel
from penstock.kernels.cpu.simd import at, load_pixels, pointer, store
from penstock.operators.image._normalizing import SPLIT

LANES = 16
"""Pixels whose values are computed at a time; no row is narrower."""


@kernel
def look_up_pixels(image: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    """target[y, x, c] = table[c, image[y, x, c]], or table[0, ...] where there is one for all; of any strides."""
    height, width, channels = image.shape
    several = len(table) > 1
    for y in range(height):
        for c in range(channels):
            values, row, out = table[c if several else 0], image[y, :, c], target[y, :, c]
            for x in range(width):
                out[x] = values[row[x]]


@njit(inline="always", **OPTIONS)
def _short(values: Vector) -> Vector:
    """float32 with 8 bits of precision left: see ``SPLIT``."""
    more = values * SPLIT
    return more - (more - values)


@inner
def compute_row(
    pixels: types.CPointer,
    start: int,
    width: int,
    factors: types.CPointer,
    target: types.CPointer,
    place: int,
    stride: int,
) -> None:
    """The values of a row of at least ``LANES`` pixels of three channels, by factors, one channel after the other.

    Args:
        pixels: a pointer to uint8, after which the row begins at ``start``.
        factors: a pointer to float32: of each channel, a, b and c of ``(value * a - b) / c``, and whether each step is rounded to bfloat16.
        target: a pointer to float32, after which the channels' rows begin at ``place``, ``place + stride`` and so on.
    """
    a, b, c, short = at(factors, 0), at(factors, 1), at(factors, 2), at(factors, 3)
    d, e, f = at(factors, 4), at(factors, 5), at(factors, 6)
    g, h, i = at(factors, 8), at(factors, 9), at(factors, 10)
    x = 0
    while short and x < width:
        # As below.
        x = min(x, width - LANES)
        red, green, blue = load_pixels(pixels, start + 3 * x, LANES, 3, False)
        store(target, place + x, _short(_short(_short(red * a) - b) / c))
        store(target, place + stride + x, _short(_short(_short(green * d) - e) / f))
        store(target, place + 2 * stride + x, _short(_short(_short(blue * g) - h) / i))
        x += LANES
    while x < width:
        # The last vector overlaps the previous one.
        x = min(x, width - LANES)
        red, green, blue = load_pixels(pixels, start + 3 * x, LANES, 3, False)
        store(target, place + x, (red * a - b) / c)
        store(target, place + stride + x, (green * d - e) / f)
        store(target, place + 2 * stride + x, (blue * g - h) / i)
        x += LANES


@kernel
def compute_planes(image: np.ndarray, factors: np.ndarray, target: np.ndarray, stride: int) -> None:
    """The values of an image (H, W, 3), contiguous and at least ``LANES`` wide, by factors: three planes of H * W, which
    begin ``stride`` apart in ``target``, contiguous."""
    height, width, _ = image.shape
    pixels, numbers, values = pointer(image.ravel()), pointer(factors.ravel()), pointer(target)
    for y in range(height):
        compute_row(pixels, 3 * y * width, width, numbers, values, y * width, stride)
