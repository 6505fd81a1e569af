"""Normalization of images in one pass, in the order in which their dimensions are stored."""

from __future__ import annotations

import functools

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.parts import IMAGES, address_of, elements_at, record_at
from penstock.kernels.cpu.simd import load, load_pixels, store

CHANNEL_VALUES = np.dtype([("mean", np.int64), ("factor", np.int64), ("shift", np.float32)], align=True)
"""The parameters of ``(x - mean) * factor + shift``; ``mean`` and ``factor`` are addresses of arrays with a float32 for each channel."""

# The number of pixels that are normalized at a time.
_LANES = 8
_MAX_BYTES_IN_VECTORS = 2
"""The maximum size in bytes of integers that :func:`_normalize_in_blocks` reads."""


@njit(inline="always", **OPTIONS)
def normalized(value: float, mean: np.float32, factor: np.float32, shift: np.float32) -> np.float32:
    """Return one value, normalized in float32; all kernels that normalize images use this order of operations."""
    return (np.float32(value) - mean) * factor + shift


@kernel
def _normalize(record: np.ndarray, images: np.ndarray, like: np.generic, like_out: np.generic) -> None:
    """Normalize an image with its dimensions in any order: channel by channel if rows of the result are contiguous, otherwise pixel
    by pixel.
    """
    values, image = record_at(record), record_at(images)
    rows, columns, channels = image.extents[0], image.extents[1], image.extents[2]
    mean = elements_at(values.mean, channels, np.float32(0))
    factor = elements_at(values.factor, channels, np.float32(0))
    planes = image.target_strides[2] > image.target_strides[1]
    for c in range(channels if planes else 1):
        for y in range(rows):
            source = image.source + y * image.source_strides[0] + c * image.source_strides[2]
            target = image.target + y * image.target_strides[0] + c * image.target_strides[2]
            for _ in range(columns):
                for k in range(1 if planes else channels):
                    value = elements_at(source + k * image.source_strides[2], 1, like)[0]
                    result = normalized(value, mean[c + k], factor[c + k], values.shift)
                    elements_at(target + k * image.target_strides[2], 1, like_out)[0] = converted(result, like_out)
                source += image.source_strides[1]
                target += image.target_strides[1]


@inner
def _begin_of_row(first: int, stride: int, columns: int) -> int:
    """Return the address of the element of a row that comes first in memory; ``stride`` may be negative."""
    return first + min(stride, 0) * (columns - 1)


@kernel
def _normalize_in_blocks(record: np.ndarray, images: np.ndarray, like: np.generic, like_out: np.generic) -> None:
    """Normalize an image to planes of float32, a block of pixels at a time; leave images that do not suit to :func:`_normalize`."""
    values, image = record_at(record), record_at(images)
    rows, columns, channels = image.extents[0], image.extents[1], image.extents[2]
    size = np.int64(elements_at(0, 0, like).itemsize)
    step = image.source_strides[1]
    mirror = step < 0
    triples = channels == 3 and abs(step) == 3 * size and image.source_strides[2] == size
    if columns < _LANES or image.target_strides[1] != 4 or not (triples or abs(step) == size):
        _normalize(record, images, like, like_out)
        return
    mean = elements_at(values.mean, channels, np.float32(0))
    factor = elements_at(values.factor, channels, np.float32(0))
    if triples:
        _triples_to_planes(image, mirror, mean, factor, values.shift, like)
        return
    for c in range(channels):
        for y in range(rows):
            first = image.source + y * image.source_strides[0] + c * image.source_strides[2]
            row = elements_at(_begin_of_row(first, step, columns), columns, like)
            out = elements_at(
                image.target + y * image.target_strides[0] + c * image.target_strides[2], columns, np.float32(0)
            )
            x = 0
            while x < columns:
                # The last block overlaps the previous one, so that all blocks have the same size.
                x = min(x, columns - _LANES)
                if mirror:
                    (block,) = load_pixels(row, columns - _LANES - x, _LANES, 1, True)
                else:
                    block = load(row, x, _LANES)
                store(out, x, (block - mean[c]) * factor[c] + values.shift)
                x += _LANES


@inner
def _triples_to_planes(
    image: np.record, mirror: bool, mean: np.ndarray, factor: np.ndarray, shift: np.float32, like: np.generic
) -> None:
    """Normalize three-channel pixels that are adjacent in memory, and store them as planes."""
    columns = image.extents[1]
    mean_r, mean_g, mean_b = mean[0], mean[1], mean[2]
    factor_r, factor_g, factor_b = factor[0], factor[1], factor[2]
    for y in range(image.extents[0]):
        first = _begin_of_row(image.source + y * image.source_strides[0], image.source_strides[1], columns)
        row = elements_at(first, 3 * columns, like)
        target, plane = image.target + y * image.target_strides[0], image.target_strides[2]
        red = elements_at(target, columns, np.float32(0))
        green = elements_at(target + plane, columns, np.float32(0))
        blue = elements_at(target + 2 * plane, columns, np.float32(0))
        x = 0
        while x < columns:
            x = min(x, columns - _LANES)
            if mirror:
                r, g, b = load_pixels(row, (columns - _LANES - x) * 3, _LANES, 3, True)
            else:
                r, g, b = load_pixels(row, x * 3, _LANES, 3, False)
            store(red, x, (r - mean_r) * factor_r + shift)
            store(green, x, (g - mean_g) * factor_g + shift)
            store(blue, x, (b - mean_b) * factor_b + shift)
            x += _LANES


@functools.cache
def normalizing_kernel(source: np.dtype, target: np.dtype) -> int:
    """Return the address of the kernel that normalizes images of the type ``source`` to the type ``target``; neither may be float16."""
    vectors = target == np.float32 and (
        source == np.float32 or (source.kind in "iu" and source.itemsize <= _MAX_BYTES_IN_VECTORS)
    )
    return address_of(_normalize_in_blocks if vectors else _normalize, CHANNEL_VALUES, IMAGES, source, target)


def converted_fill(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return fill values rounded and saturated to the output's type."""
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.where(values >= 0, np.floor(values + 0.5), np.ceil(values - 0.5)), limits.min, limits.max).astype(
        dtype
    )
