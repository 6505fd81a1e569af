"""Remapping images on the CPU."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import at, load, rounded, store
from penstock.kernels.cpu.warp import rounds_vectors


@inner
def _tap(source: np.ndarray, y: int, x: int, c: int, fill: np.float32) -> np.float32:
    if 0 <= y < source.shape[0] and 0 <= x < source.shape[1]:
        return np.float32(source[y, x, c])
    return fill


@inner
def _nearest_row(
    source: np.ndarray,
    xs: np.ndarray,
    ys: np.ndarray,
    shift: np.float32,
    fill: np.float32,
    kept: bool,
    rows: np.ndarray,
    columns: np.ndarray,
    out: np.ndarray,
    like: np.generic,
) -> None:
    height, width, channels = source.shape
    # Both offsets are added at once: with two additions, a value just below a pixel's edge might be rounded up to it.
    to_nearest = shift + np.float32(0.5)
    right, low = np.float32(width), np.float32(height)
    for x in range(xs.size):
        sx, sy = xs[x] + shift, ys[x] + shift
        # Written so that the comparison is false for NaN.
        inside = (sx > -1) & (sx < right) & (sy > -1) & (sy < low)
        column, row = np.int32(math.floor(xs[x] + to_nearest)), np.int32(math.floor(ys[x] + to_nearest))
        inside &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
        columns[x] = column if inside else np.int32(-1)
        rows[x] = row
    flat, outside = source.ravel(), converted(fill, like)
    for x in range(xs.size):
        place, pixel = x * channels, (np.int64(rows[x]) * width + columns[x]) * channels
        if columns[x] < 0:
            for c in range(channels):
                out[place + c] = outside
        elif not kept:
            for c in range(channels):
                out[place + c] = converted(np.float32(at(flat, pixel + c)), like)
        elif channels == 3:
            out[place] = at(flat, pixel)
            out[place + 1] = at(flat, pixel + 1)
            out[place + 2] = at(flat, pixel + 2)
        else:
            for c in range(channels):
                out[place + c] = at(flat, pixel + c)


@inner
def _linear_row(
    source: np.ndarray,
    xs: np.ndarray,
    ys: np.ndarray,
    shift: np.float32,
    fill: np.float32,
    out: np.ndarray,
    like: np.generic,
) -> None:
    height, width, channels = source.shape
    pixels, zero = source.reshape(-1), np.float32(0)
    stride, row = np.uint64(channels), np.uint64(channels * width)
    # A vector has four lanes. Lanes beyond the channels overwrite the next pixel, which is computed afterwards; so there must be a next
    # pixel in both input and output.
    in_vectors = rounds_vectors(like) and rounds_vectors(source[0, 0, 0]) and 1 < channels <= 4
    end_x, end_y = np.float32(width - 2), np.float32(height - 1)
    for x in range(xs.size):
        sx, sy = xs[x] + shift, ys[x] + shift
        place = x * channels
        if in_vectors and zero <= sx < end_x and zero <= sy < end_y and place + 4 <= out.size:
            column, line = np.int32(sx), np.int32(sy)
            first = np.uint64(line) * row + np.uint64(column) * stride
            fx, fy = sx - np.float32(column), sy - np.float32(line)
            left, low = load(pixels, first, 4), load(pixels, first + row, 4)
            top = left + (load(pixels, first + stride, 4) - left) * fx
            low = low + (load(pixels, first + row + stride, 4) - low) * fx
            store(out, place, rounded(top + (low - top) * fy, like))
            continue
        # Written so that the comparison is false for NaN.
        if not (-1 < sx < width and -1 < sy < height):
            out[place : place + channels] = converted(fill, like)
            continue
        x0, y0 = math.floor(sx), math.floor(sy)
        fx, fy = np.float32(sx - x0), np.float32(sy - y0)
        for c in range(channels):
            a, b = _tap(source, y0, x0, c, fill), _tap(source, y0, x0 + 1, c, fill)
            d, e = _tap(source, y0 + 1, x0, c, fill), _tap(source, y0 + 1, x0 + 1, c, fill)
            top, low = a + (b - a) * fx, d + (e - d) * fx
            out[place + c] = converted(np.float32(top + (low - top) * fy), like)


@inner
def _take_row(
    source: np.ndarray,
    xs: np.ndarray,
    ys: np.ndarray,
    shift: np.float32,
    linear: bool,
    fill: np.float32,
    kept: bool,
    rows: np.ndarray,
    columns: np.ndarray,
    out: np.ndarray,
    like: np.generic,
) -> None:
    """Compute one row of the output, flattened; ``rows`` and ``columns`` are int32 scratch memory as long as ``xs``."""
    if linear:
        _linear_row(source, xs, ys, shift, fill, out, like)
    else:
        _nearest_row(source, xs, ys, shift, fill, kept, rows, columns, out, like)


@kernel
def _remap(
    source: np.ndarray,
    mapx: np.ndarray,
    mapy: np.ndarray,
    shift: np.float32,
    linear: bool,
    fill: np.float32,
    kept: bool,
    target: np.ndarray,
    like: np.generic,
) -> None:
    rows, columns = np.empty(target.shape[1], np.int32), np.empty(target.shape[1], np.int32)
    for y in range(target.shape[0]):
        out = target[y].ravel()
        _take_row(source, mapx[y], mapy[y], shift, linear, fill, kept, rows, columns, out, like)


@kernel
def _waves(
    source: np.ndarray,
    across: np.ndarray,
    down: np.ndarray,
    shift: np.float32,
    linear: bool,
    fill: np.float32,
    kept: bool,
    target: np.ndarray,
    like: np.generic,
) -> None:
    width = target.shape[1]
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    rows, columns = np.empty(width, np.int32), np.empty(width, np.int32)
    steps = np.arange(width).astype(np.float32)
    for y in range(target.shape[0]):
        for x in range(width):
            xs[x] = steps[x] + across[y]
            ys[x] = np.float32(y) + down[x]
        _take_row(source, xs, ys, shift, linear, fill, kept, rows, columns, target[y].ravel(), like)


@kernel
def _ball(
    source: np.ndarray,
    radius: float,
    middle_x: float,
    middle_y: float,
    from_x: np.ndarray,
    from_y: np.ndarray,
    shift: np.float32,
    linear: bool,
    fill: np.float32,
    kept: bool,
    target: np.ndarray,
    like: np.generic,
) -> None:
    width = target.shape[1]
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    rows, columns = np.empty(width, np.int32), np.empty(width, np.int32)
    for y in range(target.shape[0]):
        dy = from_y[y]
        for x in range(width):
            dx = from_x[x]
            distance = np.sqrt(dx * dx + dy * dy) / radius
            xs[x] = middle_x + distance * dx
            ys[x] = middle_y + distance * dy
        _take_row(source, xs, ys, shift, linear, fill, kept, rows, columns, target[y].ravel(), like)


def _is_kept(source: np.ndarray, target: np.ndarray) -> bool:
    """Return whether pixels can be copied as they are: conversion to float32 and to the target's type would not change them."""
    return source.dtype == target.dtype and (source.dtype == np.float32 or source.itemsize <= 2)


def remap(
    source: np.ndarray,
    mapx: np.ndarray,
    mapy: np.ndarray,
    shift: float,
    linear: bool,
    target: np.ndarray,
    fill: float = 0.0,
) -> None:
    """Sample an image (H, W, C) at the positions (mapx + shift, mapy + shift), where (0, 0) is the centre of the first pixel.

    Args:
        source, mapx, mapy: contiguous; the maps are float32 and have the output's height and width.
        linear: whether to interpolate; otherwise, the nearest pixel is used.
        target: the output; its dtype determines how results are rounded.
        fill: the value outside the source.
    """
    kept, value = _is_kept(source, target), np.float32(fill)
    _remap(source, mapx, mapy, np.float32(shift), linear, value, kept, target, target.dtype.type(0))


def displace_by_waves(
    source: np.ndarray,
    across: np.ndarray,
    down: np.ndarray,
    shift: float,
    linear: bool,
    target: np.ndarray,
    fill: float = 0.0,
) -> None:
    """Same as :func:`remap`, with maps that move each row y horizontally by ``across[y]``, and each column x vertically by ``down[x]``."""
    kept, value = _is_kept(source, target), np.float32(fill)
    _waves(source, across, down, np.float32(shift), linear, value, kept, target, target.dtype.type(0))


def displace_on_ball(source: np.ndarray, shift: float, linear: bool, target: np.ndarray, fill: float = 0.0) -> None:
    """Same as :func:`remap`, with a bulge: distances from the centre are squared, in units of half the longer side."""
    height, width = source.shape[:2]
    middle_x, middle_y = width / 2, height / 2
    from_x = np.arange(width, dtype=np.float32) + np.float32(0.5 - middle_x)
    from_y = np.arange(height, dtype=np.float32) + np.float32(0.5 - middle_y)
    radius = np.float32(max(int(max(middle_x, middle_y)), 1))
    _ball(
        source,
        radius,
        np.float32(middle_x),
        np.float32(middle_y),
        from_x,
        from_y,
        np.float32(shift),
        linear,
        np.float32(fill),
        _is_kept(source, target),
        target,
        target.dtype.type(0),
    )
