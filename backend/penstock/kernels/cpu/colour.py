"""Colour arithmetic on the CPU."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.deferred import overload
from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.parts import RUN, address_of, elements_at, record_at
from penstock.kernels.cpu.simd import load, load_pixels, mix_pixels, rounded, store, store_pixels

_FACTOR = np.dtype([("factor", np.float32), ("offset", np.float32)])
_MATRIX = np.dtype([("matrix", np.float32, 9), ("offset", np.float32, 3)])


# The number of elements that are scaled, and of pixels that are transformed, at a time.
_ELEMENTS = 32
_PIXELS = 16


def _in_vectors(source: Any, like: Any) -> bool:
    """Return whether vectors can be loaded from elements of the type of ``source`` and stored in the type of ``like``. For use in
    kernels.
    """
    raise TypeError("this function can only be called in numba kernels")


# numba compares the signatures of overloads, annotations included, so this function has none.
@overload(_in_vectors)
def _in_vectors_of(source, like):  # type: ignore[no-untyped-def]
    answer = source in (types.uint8, types.int16, types.float32) and like in (types.uint8, types.float32)
    return lambda source, like: answer


@kernel
def _scale_add(
    source: np.ndarray, factor: np.float32, offset: np.float32, target: np.ndarray, like: np.generic
) -> None:
    done = 0
    if _in_vectors(source[0], like):
        while done + _ELEMENTS <= source.size:
            store(target, done, rounded(load(source, done, _ELEMENTS) * factor + offset, like))
            done += _ELEMENTS
    for i in range(done, source.size):
        target[i] = converted(np.float32(source[i]) * factor + offset, like)


@kernel
def _mix(source: np.ndarray, matrix: np.ndarray, offset: np.ndarray, target: np.ndarray, like: np.generic) -> None:
    """Reduce three channels to one: source (pixels, 3) -> target (pixels, 1), matrix (1, 3)."""
    a, b, c, d = matrix[0, 0], matrix[0, 1], matrix[0, 2], offset[0]
    for p in range(source.shape[0]):
        value = a * np.float32(source[p, 0]) + b * np.float32(source[p, 1]) + c * np.float32(source[p, 2]) + d
        target[p, 0] = converted(value, like)


@kernel
def _transform(
    source: np.ndarray, matrix: np.ndarray, offset: np.ndarray, target: np.ndarray, like: np.generic
) -> None:
    """Transform channels: source (pixels, 3) -> target (pixels, 3), matrix (3, 3)."""
    # In local variables, the matrix stays in registers.
    m00, m01, m02, m03 = matrix[0, 0], matrix[0, 1], matrix[0, 2], offset[0]
    m10, m11, m12, m13 = matrix[1, 0], matrix[1, 1], matrix[1, 2], offset[1]
    m20, m21, m22, m23 = matrix[2, 0], matrix[2, 1], matrix[2, 2], offset[2]
    count, done = source.shape[0], 0
    if _in_vectors(source[0, 0], like):
        pixels, out = source.reshape(-1), target.reshape(-1)
        while done + _PIXELS <= count:
            reds, greens, blues = load_pixels(pixels, done * 3, _PIXELS, 3, False)
            first = rounded(reds * m00 + greens * m01 + blues * m02 + m03, like)
            second = rounded(reds * m10 + greens * m11 + blues * m12 + m13, like)
            third = rounded(reds * m20 + greens * m21 + blues * m22 + m23, like)
            store_pixels(out, done * 3, (first, second, third))
            done += _PIXELS
    for p in range(done, count):
        r, g, b = np.float32(source[p, 0]), np.float32(source[p, 1]), np.float32(source[p, 2])
        target[p, 0] = converted(m00 * r + m01 * g + m02 * b + m03, like)
        target[p, 1] = converted(m10 * r + m11 * g + m12 * b + m13, like)
        target[p, 2] = converted(m20 * r + m21 * g + m22 * b + m23, like)


@kernel
def _scale_add_run(
    record: np.ndarray, source: int, target: int, count: int, like: np.generic, like_out: np.generic
) -> None:
    """Run :func:`_scale_add` on ``count`` adjacent elements; the record is a ``_FACTOR``."""
    work = record_at(record)
    _scale_add(
        elements_at(source, count, like), work.factor, work.offset, elements_at(target, count, like_out), like_out
    )


@kernel
def _transform_run(
    record: np.ndarray, source: int, target: int, count: int, like: np.generic, like_out: np.generic
) -> None:
    """Run :func:`_transform` on ``count`` adjacent pixels; the record is a ``_MATRIX``."""
    work = record_at(record)
    pixels = elements_at(source, count, like).reshape(count // 3, 3)
    out = elements_at(target, count, like_out).reshape(count // 3, 3)
    _transform(pixels, work.matrix.reshape(3, 3), work.offset, out, like_out)


def linear_records(
    matrices: np.ndarray, offsets: np.ndarray, source: np.dtype, target: np.dtype
) -> tuple[np.ndarray, int]:
    """Return what the core needs to map pixels linearly: a record for each image, and the address of the kernel.

    Args:
        matrices: an array of shape (images, 1, 1), with one factor for all channels, or (images, 3, 3).
        offsets: an array of shape (images, 1) or (images, 3).
        source, target: types of elements; not float16.
    """
    count, size, _ = matrices.shape
    records = np.empty(count, _FACTOR if size == 1 else _MATRIX)
    if size == 1:
        records["factor"], records["offset"] = matrices[:, 0, 0], offsets[:, 0]
    else:
        records["matrix"], records["offset"] = matrices.reshape(count, 9), offsets
    return records, _linear_kernel(size == 1, source, target)


@functools.cache
def _linear_kernel(scales: bool, source: np.dtype, target: np.dtype) -> int:
    kernel, record = (_scale_add_run, _FACTOR) if scales else (_transform_run, _MATRIX)
    return address_of(kernel, record, RUN, source, target)


# The number of pixels converted to grey at a time.
_LANES = 16
_WEIGHT_BITS = 15


@kernel
def _to_grey(source: np.ndarray, weights: tuple[np.int32, ...], target: np.ndarray) -> None:
    """Convert to grey: source (pixels * 3) -> target (pixels), both of uint8."""
    p = 0
    while p < target.size:
        if target.size < _LANES:
            mix_pixels(source, p * 3, weights, _WEIGHT_BITS, target, p, 1)
            p += 1
        else:
            # The last block overlaps the previous one, so that all blocks have the same size.
            p = min(p, target.size - _LANES)
            mix_pixels(source, p * 3, weights, _WEIGHT_BITS, target, p, _LANES)
            p += _LANES


def to_grey(source: np.ndarray, luma: tuple[np.int32, ...], target: np.ndarray) -> None:
    """Compute the luminance of uint8 pixels: the sum of three channels times ``luma``; both arrays contiguous.

    The weights are multiples of 2^-15 that sum to 1.
    """
    _to_grey(source.reshape(-1), luma, target.reshape(-1))


def scale_add(source: np.ndarray, factor: float, offset: float, target: np.ndarray) -> None:
    """Compute ``target = source * factor + offset``; both arrays are contiguous."""
    _scale_add(source.reshape(-1), np.float32(factor), np.float32(offset), target.reshape(-1), target.dtype.type(0))


def transform(source: np.ndarray, matrix: np.ndarray, offset: np.ndarray, target: np.ndarray) -> None:
    """Compute ``matrix @ pixel + offset`` for each pixel of three channels; the matrix has 1 or 3 rows. ``source`` and ``target`` are
    contiguous, channels last.
    """
    kernel = _transform if len(matrix) == 3 else _mix
    kernel(
        source.reshape(-1, 3),
        np.ascontiguousarray(matrix, np.float32),
        np.ascontiguousarray(offset, np.float32),
        target.reshape(-1, matrix.shape[0]),
        target.dtype.type(0),
    )
