"""Normalizing pixels on the CPU, with values looked up in a table per channel or computed."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.code_generation import Vector, types
from penstock.kernels.cpu.fixed_point import sum_columns, sum_rows
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.pixel_values import LANES, is_written_past_cache, store_values
from penstock.kernels.cpu.simd import at, fence, load_pixels, pointer
from penstock.operators.image._normalizing import SPLIT


@kernel
def look_up_pixels(image: np.ndarray, table: np.ndarray, target: np.ndarray) -> None:
    """Set target[y, x, c] = table[c, image[y, x, c]], or table[0, ...] if there is one row for all channels.

    The arrays may have any strides.
    """
    height, width, channels = image.shape
    several = len(table) > 1
    for y in range(height):
        for c in range(channels):
            values, row, out = table[c if several else 0], image[y, :, c], target[y, :, c]
            for x in range(width):
                out[x] = values[row[x]]


@njit(inline="always", **OPTIONS)
def _short(values: Vector) -> Vector:
    """Return float32 values rounded to 8 bits of precision: see ``SPLIT``."""
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
    past_cache: bool,
) -> None:
    """Normalize a row of at least ``LANES`` pixels of three channels, and write each channel to a row of its own.

    Args:
        pixels: a pointer to uint8; the row begins ``start`` elements after it.
        factors: a pointer to float32: for each channel, a, b and c of ``(value * a - b) / c``, and whether each step is rounded to
            bfloat16.
        target: a pointer to float32; the channels' rows begin at ``place``, ``place + stride`` and ``place + 2 * stride``.
        past_cache: whether to write past the cache: see :func:`is_written_past_cache`; then, the caller must call :func:`fence` last.
    """
    a, b, c, short = at(factors, 0), at(factors, 1), at(factors, 2), at(factors, 3)
    d, e, f = at(factors, 4), at(factors, 5), at(factors, 6)
    g, h, i = at(factors, 8), at(factors, 9), at(factors, 10)
    x = 0
    while short and x < width:
        # The last vector overlaps the previous one, as below.
        x = min(x, width - LANES)
        red, green, blue = load_pixels(pixels, start + 3 * x, LANES, 3, False)
        store_values(target, place + x, _short(_short(_short(red * a) - b) / c), past_cache)
        store_values(target, place + stride + x, _short(_short(_short(green * d) - e) / f), past_cache)
        store_values(target, place + 2 * stride + x, _short(_short(_short(blue * g) - h) / i), past_cache)
        x += LANES
    while x < width:
        # The last vector overlaps the previous one.
        x = min(x, width - LANES)
        red, green, blue = load_pixels(pixels, start + 3 * x, LANES, 3, False)
        store_values(target, place + x, (red * a - b) / c, past_cache)
        store_values(target, place + stride + x, (green * d - e) / f, past_cache)
        store_values(target, place + 2 * stride + x, (blue * g - h) / i, past_cache)
        x += LANES


@kernel
def compute_planes(image: np.ndarray, factors: np.ndarray, target: np.ndarray, stride: int) -> None:
    """Normalize an image into three planes.

    Planes are not written past the cache, because images that have not been resized before are resized next (DINOv3).

    Args:
        image: uint8 of shape (H, W, 3), contiguous, at least ``LANES`` wide.
        factors: as for :func:`compute_row`.
        target: float32, 1-D; receives planes of H * W values.
        stride: distance between the starts of two planes in ``target``.
    """
    height, width, _ = image.shape
    pixels, numbers, values = pointer(image.ravel()), pointer(factors.ravel()), pointer(target)
    for y in range(height):
        compute_row(pixels, 3 * y * width, width, numbers, values, y * width, stride, False)


# Number of rows resized before they are normalized, few enough to stay in a cache.
_ROWS = 32


@kernel
def resample_to_planes(
    image: np.ndarray,
    row_starts: np.ndarray,
    row_weights: np.ndarray,
    row_bits: int,
    starts: np.ndarray,
    weights: np.ndarray,
    bits: int,
    factors: np.ndarray,
    between: np.ndarray,
    target: np.ndarray,
) -> None:
    """Resize an image (H, W, 3) as ``resample_image`` of ``kernels/cpu/fixed_point.py`` does, columns first, and store
    the normalized values.

    Args:
        image: uint8, contiguous; the vertical filter must read at least ``BLOCK`` (of ``fixed_point.py``) of its rows.
        row_starts, row_weights, row_bits: the vertical filter.
        starts, weights, bits: the horizontal filter, for at least ``LANES`` output columns.
        factors: as for :func:`compute_row`.
        between: uint8 of shape (rows that are read, 3 * w), contiguous: memory for horizontally resized rows.
        target: float32 of shape (3, h, w), contiguous.
    """
    rows, first = image.reshape(image.shape[0], 3 * image.shape[1]), row_starts.min()
    sum_columns(rows[first : first + between.shape[0]], 3, starts, weights, bits, between)
    sum_rows_to_planes(between, row_starts - np.int32(first), row_weights, row_bits, factors, target)


@kernel
def sum_rows_to_planes(
    rows: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    bits: int,
    factors: np.ndarray,
    target: np.ndarray,
) -> None:
    """Run the second pass of :func:`resample_to_planes`: apply the vertical filter to rows (H, 3 * w), and normalize."""
    _, height, width = target.shape
    lines = np.empty((_ROWS, 3 * width), np.uint8)
    pixels, numbers, values = pointer(lines.ravel()), pointer(factors.ravel()), pointer(target.ravel())
    past_cache = is_written_past_cache(target, width, height * width)
    for begin in range(0, height, _ROWS):
        end = min(begin + _ROWS, height)
        sum_rows(rows, starts[begin:end], weights[begin:end], bits, lines[: end - begin])
        for y in range(begin, end):
            start = 3 * (y - begin) * width
            compute_row(pixels, start, width, numbers, values, y * width, height * width, past_cache)
    fence()
