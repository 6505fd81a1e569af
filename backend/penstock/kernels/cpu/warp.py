"""Affine warping on the CPU. Pixel centres are at +0.5 in input and output."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.deferred import overload
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.parts import MAPPED_REGION, PARTS, address_of, elements_at, record_at
from penstock.kernels.cpu.simd import load, rounded, store

# Positions up to this, advanced across a tile by repeated addition, have an error of less than half a pixel.
_MAX_ADVANCED = 1 << 15

# As in DALI, the input position is computed from the matrix at the start of each tile of this many pixels of a row; within the tile, it
# is advanced by addition.
TILE = 256


@inner
def _start_2d(m: np.ndarray, x: int, y: int) -> tuple[np.float32, np.float32]:
    """Return the input coordinates of the centre of output pixel (x, y)."""
    half = np.float32(0.5)
    cx, cy = np.float32(x) + half, np.float32(y) + half
    # The order of additions affects rounding, and so which neighbour is nearest in a tie; this is DALI's order.
    return (m[0, 2] + m[0, 0] * cx) + m[0, 1] * cy, (m[1, 2] + m[1, 0] * cx) + m[1, 1] * cy


@kernel
def _nearest_2d(
    source: np.ndarray,
    m: np.ndarray,
    has_fill: bool,
    fill: np.float32,
    first_row: int,
    first_column: int,
    target: np.ndarray,
    like: np.generic,
) -> None:
    """Compute a part of the output, which begins at ``first_row`` and ``first_column``, a multiple of ``TILE``."""
    height, width, channels = source.shape
    for y in range(target.shape[0]):
        fx = fy = np.float32(0)
        for x in range(target.shape[1]):
            if x % TILE == 0:
                fx, fy = _start_2d(m, first_column + x, first_row + y)
            sx, sy = math.floor(fx), math.floor(fy)
            fx += m[0, 0]
            fy += m[1, 0]
            if has_fill and not (0 <= sx < width and 0 <= sy < height):
                for c in range(channels):
                    target[y, x, c] = converted(fill, like)
                continue
            sx = min(max(sx, 0), width - 1)
            sy = min(max(sy, 0), height - 1)
            for c in range(channels):
                target[y, x, c] = converted(source[sy, sx, c], like)


@njit(inline="always", **OPTIONS)
def _between(
    a: np.float32, b: np.float32, d: np.float32, e: np.float32, fx: np.float32, fy: np.float32, like: np.generic
) -> np.generic:
    """Interpolate between four neighbours, two above and two below, with DALI's roundings."""
    rest = np.float32(1) - fx
    top = a * rest + b * fx
    low = d * rest + e * fx
    return converted(top + (low - top) * fy, like)


def rounds_vectors(like: Any) -> bool:
    """Return whether vectors can be rounded to the type of ``like``: not if it is an integer of more than 16 bits. For use in kernels."""
    raise TypeError("this function can only be called in numba kernels")


# numba compares the signatures of overloads, annotations included, so this function has none.
@overload(rounds_vectors)
def _rounds_vectors_of(like):  # type: ignore[no-untyped-def]
    answer = isinstance(like, types.Float) or like.bitwidth <= 16
    return lambda like: answer


@njit(inline="always", **OPTIONS)
def blended(
    pixels: np.ndarray,
    first: np.uint64,
    right: np.uint64,
    below: np.uint64,
    fx: np.float32,
    fy: np.float32,
    like: np.generic,
) -> Any:
    """Same as :func:`_between`, for four channels at once; the neighbours are the pixel at ``first`` and the pixels ``right``, ``below``,
    and both further on.
    """
    rest = np.float32(1) - fx
    top = load(pixels, first, 4) * rest + load(pixels, first + right, 4) * fx
    low = load(pixels, first + below, 4) * rest + load(pixels, first + right + below, 4) * fx
    return rounded(top + (low - top) * fy, like)


@inner
def _steps_inside(position: np.float32, step: np.float32, end: np.float32) -> np.int64:
    """Return how often a position can be advanced, at most ``TILE`` times, so that it certainly stays between 0 and ``end``, exclusive."""
    # Half a pixel is reserved for the rounding errors of the steps.
    rest = (end - position if step > 0 else position) - np.float32(0.5)
    return np.int64(min(max(rest, np.float32(0)) / max(abs(step), np.float32(1e-6)), np.float32(TILE)))


@kernel
def _linear_2d(
    source: np.ndarray,
    m: np.ndarray,
    has_fill: bool,
    fill: np.float32,
    first_row: int,
    first_column: int,
    target: np.ndarray,
    like: np.generic,
) -> None:
    """Compute a part of the output, which begins at ``first_row`` and ``first_column``, a multiple of ``TILE``."""
    height, width, channels = source.shape
    half, zero = np.float32(0.5), np.float32(0)
    # Arrays are flat, and indices are unsigned, so that numba generates no code for negative ones.
    pixels, out = source.reshape(-1), target.reshape(-1)
    stride, row, four = np.uint64(channels), np.uint64(channels * width), np.uint64(4)
    place, step_x, step_y = np.uint64(0), m[0, 0], m[1, 0]
    # A vector has four lanes. Lanes beyond the channels overwrite the next pixel, which is computed afterwards; so there must be a next
    # pixel in both input and output.
    in_vectors, blank = rounds_vectors(like) and 1 < channels <= 4, converted(fill, like)
    end_x, end_y = np.float32(min(width - 2, _MAX_ADVANCED)), np.float32(min(height - 1, _MAX_ADVANCED))
    for y in range(target.shape[0]):
        px = py = zero
        x, followed = 0, target.shape[1] - (1 if y == target.shape[0] - 1 else 0)
        while x < target.shape[1]:
            if x % TILE == 0:
                px, py = _start_2d(m, first_column + x, first_row + y)
            sx, sy = px - half, py - half
            if in_vectors and zero <= sx < end_x and zero <= sy < end_y:
                # Pixels at positions inside the image need no checks.
                count = min(_steps_inside(sx, step_x, end_x), _steps_inside(sy, step_y, end_y))
                count = min(count, TILE - x % TILE, followed - x)
                for _ in range(count):
                    column, line = np.int32(sx), np.int32(sy)
                    fx, fy = sx - np.float32(column), sy - np.float32(line)
                    first = np.uint64(line) * row + np.uint64(column) * stride
                    store(out, place, blended(pixels, first, stride, row, fx, fy, like))
                    place += stride
                    px += step_x
                    py += step_y
                    sx, sy = px - half, py - half
                x += count
                if count > 0:
                    continue
            px += step_x
            py += step_y
            x += 1
            left, upper = np.floor(sx), np.floor(sy)
            fx, fy = sx - left, sy - upper
            x0, y0 = int(left), int(upper)
            x1, y1 = x0 + 1, y0 + 1
            is_inside = x0 >= 0 and x1 < width and y0 >= 0 and y1 < height
            if has_fill and not is_inside:
                # If the position is not finite, `fx` or `fy` is NaN, and so is the result.
                is_beyond = left < -1 or upper < -1 or left >= width or upper >= height
                if is_beyond and fx >= zero and fy >= zero:
                    for _ in range(stride):
                        out[place] = blank
                        place += np.uint64(1)
                    continue
                left_in, right_in = 0 <= x0 < width, 0 <= x1 < width
                top_in, low_in = 0 <= y0 < height, 0 <= y1 < height
                x0, x1 = min(max(x0, 0), width - 1), min(max(x1, 0), width - 1)
                y0, y1 = min(max(y0, 0), height - 1), min(max(y1, 0), height - 1)
                for c in range(channels):
                    a = np.float32(source[y0, x0, c]) if left_in and top_in else fill
                    b = np.float32(source[y0, x1, c]) if right_in and top_in else fill
                    d = np.float32(source[y1, x0, c]) if left_in and low_in else fill
                    e = np.float32(source[y1, x1, c]) if right_in and low_in else fill
                    out[place] = _between(a, b, d, e, fx, fy, like)
                    place += np.uint64(1)
                continue
            if not is_inside:
                x0, x1 = min(max(x0, 0), width - 1), min(max(x1, 0), width - 1)
                y0, y1 = min(max(y0, 0), height - 1), min(max(y1, 0), height - 1)
            first = np.uint64(y0) * row + np.uint64(x0) * stride
            right, below = np.uint64(x1 - x0) * stride, np.uint64(y1 - y0) * row
            if in_vectors and first + right + below + four <= pixels.size and place + four <= out.size:
                store(out, place, blended(pixels, first, right, below, fx, fy, like))
                place += stride
                continue
            for _ in range(stride):
                a, b = np.float32(pixels[first]), np.float32(pixels[first + right])
                d, e = np.float32(pixels[first + below]), np.float32(pixels[first + right + below])
                out[place] = _between(a, b, d, e, fx, fy, like)
                first += np.uint64(1)
                place += np.uint64(1)


@inner
def _tap_3d(source: np.ndarray, x: int, y: int, z: int, c: int, has_fill: bool, fill: np.float32) -> np.float32:
    depth, height, width, _ = source.shape
    if has_fill and not (0 <= x < width and 0 <= y < height and 0 <= z < depth):
        return fill
    x = min(max(x, 0), width - 1)
    y = min(max(y, 0), height - 1)
    z = min(max(z, 0), depth - 1)
    return np.float32(source[z, y, x, c])


@inner
def _plane_3d(
    source: np.ndarray, x: int, y: int, z: int, c: int, has_fill: bool, fill: np.float32, fx: np.float32, fy: np.float32
) -> np.float32:
    """Interpolate between four neighbours of a plane, with DALI's roundings."""
    one = np.float32(1)
    top = _tap_3d(source, x, y, z, c, has_fill, fill) * (one - fx)
    top += _tap_3d(source, x + 1, y, z, c, has_fill, fill) * fx
    low = _tap_3d(source, x, y + 1, z, c, has_fill, fill) * (one - fx)
    low += _tap_3d(source, x + 1, y + 1, z, c, has_fill, fill) * fx
    return top * (one - fy) + low * fy


@inner
def _start_3d(m: np.ndarray, axis: int, x: int, y: int, z: int) -> np.float32:
    half = np.float32(0.5)
    cx, cy, cz = np.float32(x) + half, np.float32(y) + half, np.float32(z) + half
    return ((m[axis, 3] + m[axis, 0] * cx) + m[axis, 1] * cy) + m[axis, 2] * cz


@kernel
def _warp_3d(
    source: np.ndarray,
    m: np.ndarray,
    linear: bool,
    has_fill: bool,
    fill: np.float32,
    target: np.ndarray,
    like: np.generic,
) -> None:
    half = np.float32(0.5)
    shift = half if linear else np.float32(0)
    for z in range(target.shape[0]):
        for y in range(target.shape[1]):
            px = py = pz = np.float32(0)
            for x in range(target.shape[2]):
                if x % TILE == 0:
                    px, py, pz = _start_3d(m, 0, x, y, z), _start_3d(m, 1, x, y, z), _start_3d(m, 2, x, y, z)
                sx, sy, sz = px - shift, py - shift, pz - shift
                px += m[0, 0]
                py += m[1, 0]
                pz += m[2, 0]
                x0, y0, z0 = math.floor(sx), math.floor(sy), math.floor(sz)
                fx, fy, fz = np.float32(sx - x0), np.float32(sy - y0), np.float32(sz - z0)
                for c in range(source.shape[3]):
                    if not linear:
                        target[z, y, x, c] = converted(_tap_3d(source, x0, y0, z0, c, has_fill, fill), like)
                        continue
                    front = _plane_3d(source, x0, y0, z0, c, has_fill, fill, fx, fy)
                    back = _plane_3d(source, x0, y0, z0 + 1, c, has_fill, fill, fx, fy)
                    target[z, y, x, c] = converted(front + (back - front) * fz, like)


WARP = np.dtype(
    [
        ("matrix", np.float32, 6),
        ("shape_in", np.int64, 3),
        ("channels", np.int64),
        ("linear", np.int64),
        ("has_fill", np.int64),
        ("fill", np.float32),
    ],
    align=True,
)
"""How an image is warped: ``matrix`` is 2x3 and maps output to input coordinates."""


@kernel
def _covered(record: np.ndarray, region: np.ndarray) -> None:
    """Extend ``region``, a part of the output, to the left up to the start of a tile, because rows are computed from there."""
    window = record_at(region)
    column = window.anchor[1] % TILE
    window.anchor[1] -= column
    window.extents[1] += column
    window.anchor[2], window.extents[2] = 0, record_at(record).channels


@kernel
def _read(record: np.ndarray, region: np.ndarray) -> None:
    """Replace ``region`` by the whole input, because any part of the output may depend on all of it."""
    work, window = record_at(record), record_at(region)
    for axis in range(3):
        window.anchor[axis], window.extents[axis] = 0, work.shape_in[axis]


@kernel
def _warp_part(
    record: np.ndarray,
    source_part: np.ndarray,
    target_part: np.ndarray,
    _scratch: int,
    like: np.generic,
    like_out: np.generic,
) -> None:
    """Compute a part of a warped image; both arrays are contiguous."""
    work, source, target = record_at(record), record_at(source_part), record_at(target_part)
    height, width, channels = work.shape_in[0], work.shape_in[1], work.shape_in[2]
    image = elements_at(source.data, height * width * channels, like).reshape(height, width, channels)
    rows, columns = target.extents[0], target.extents[1]
    out = elements_at(target.data, rows * columns * channels, like_out).reshape(rows, columns, channels)
    matrix, has_fill = work.matrix.reshape(2, 3), work.has_fill != 0
    if work.linear != 0:
        _linear_2d(image, matrix, has_fill, work.fill, target.anchor[0], target.anchor[1], out, like_out)
    else:
        _nearest_2d(image, matrix, has_fill, work.fill, target.anchor[0], target.anchor[1], out, like_out)


class WarpKernels(NamedTuple):
    """The addresses of kernels that the compiled core calls for ``WARP`` records."""

    compute: int
    covers: int
    reads: int


@functools.cache
def warp_kernels(source: np.dtype, target: np.dtype) -> WarpKernels:
    """Return the kernels for elements of the types ``source`` and ``target``."""
    return WarpKernels(
        address_of(_warp_part, WARP, PARTS, source, target),
        address_of(_covered, WARP, MAPPED_REGION),
        address_of(_read, WARP, MAPPED_REGION),
    )


def warp(
    source: np.ndarray,
    matrix: np.ndarray,
    linear: bool,
    fill: float | None,
    target: np.ndarray,
    first_row: int = 0,
    first_column: int = 0,
) -> None:
    """Warp an image (H, W, C) or a volume (D, H, W, C), or compute a part of a warped image.

    Args:
        source: contiguous.
        matrix: maps output to input coordinates: 2x3 (x, y) or 3x4 (x, y, z).
        linear: whether to interpolate; otherwise, the nearest pixel is used.
        fill: the value outside the source; None: the value of the nearest pixel of the source.
        target: the output; its dtype determines how results are rounded.
        first_row, first_column: the position in the warped image at which the target begins; the column must be a multiple
            of :data:`TILE`.
    """
    value = np.float32(0 if fill is None else fill)
    like = target.dtype.type(0)
    m = np.ascontiguousarray(matrix, np.float32)
    if source.ndim == 4:
        _warp_3d(source, m, linear, fill is not None, value, target, like)
    else:
        (_linear_2d if linear else _nearest_2d)(
            source, m, fill is not None, value, first_row, first_column, target, like
        )
