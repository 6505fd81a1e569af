"""Transposed copies, in particular between channels first and channels last."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from penstock.core.chains import STORE, StageKind, StageRecords, array_part, compute_part, placements
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import IMAGES, address_of, elements_at, record_at
from penstock.kernels.cpu.simd import copy_joined, copy_split

# The number of pixels that are interleaved, or separated into planes, at a time.
_LANES = 16
# The height and width of the tiles that are copied if adjacent elements of the input are not adjacent in the output.
_TILE = 16
_NO_VALUES = np.dtype([("unused", np.int64)])
"""The type of the record that the kernel ignores: all its parameters are in the image's record."""
MIN_RANK = 3
"""The smallest number of dimensions that the kernel supports."""


@kernel
def _transpose(_record: np.ndarray, images: np.ndarray, like: np.generic) -> None:
    """Copy an image of three dimensions to an output whose dimensions are permuted.

    Args:
        images: the record of the image, with addresses, extents, and strides of input and output.
        like: any unsigned integer of the elements' size.
    """
    image = record_at(images)
    size = np.int64(elements_at(0, 0, like).itemsize)
    # The dimension along which elements are adjacent in the input, that in the output, and below, the remaining dimension.
    inward, outward = 2, 2
    for axis in range(3):
        if image.source_strides[axis] == size and image.extents[axis] > 1:
            inward = axis
        if image.target_strides[axis] == size and image.extents[axis] > 1:
            outward = axis
    if inward == outward:
        _copy_pixels(image, inward, like)
        return
    rest = 3 - inward - outward
    rows, columns = image.extents[rest], image.extents[outward]
    source_row, target_row = image.source_strides[rest], image.target_strides[rest]
    if image.extents[inward] == 3 and image.source_strides[outward] == 3 * size:
        if source_row == columns * 3 * size and target_row == columns * size:
            rows, columns = 1, rows * columns
        if columns >= _LANES:
            _split(
                image.source, image.target, rows, columns, source_row, target_row, image.target_strides[inward], like
            )
            return
    rows, columns = image.extents[rest], image.extents[inward]
    if image.extents[outward] == 3 and image.target_strides[inward] == 3 * size:
        if source_row == columns * size and target_row == columns * 3 * size:
            rows, columns = 1, rows * columns
        if columns >= _LANES:
            _join(
                image.source, image.target, rows, columns, source_row, target_row, image.source_strides[outward], like
            )
            return
    _copy_in_tiles(image, inward, outward, rest, like)


@inner
def _copy_pixels(image: np.record, axis: int, like: np.generic) -> None:
    """Copy an image in square tiles of pixels; a pixel's elements are adjacent, along ``axis``, in both input and output."""
    inner_axis, outer_axis = (axis + 1) % 3, (axis + 2) % 3
    if image.target_strides[inner_axis] > image.target_strides[outer_axis]:
        inner_axis, outer_axis = outer_axis, inner_axis
    rows, columns, channels = image.extents[outer_axis], image.extents[inner_axis], image.extents[axis]
    source_row, source_column = image.source_strides[outer_axis], image.source_strides[inner_axis]
    target_row, target_column = image.target_strides[outer_axis], image.target_strides[inner_axis]
    source_step, target_step = image.source_strides[axis], image.target_strides[axis]
    size = np.int64(elements_at(0, 0, like).itemsize)
    is_triple = channels == 3 and source_step == size and target_step == size
    for top in range(0, rows, _TILE):
        for left in range(0, columns, _TILE):
            for y in range(top, min(top + _TILE, rows)):
                source = image.source + y * source_row + left * source_column
                target = image.target + y * target_row + left * target_column
                for _ in range(min(_TILE, columns - left)):
                    if is_triple:
                        values, results = elements_at(source, 3, like), elements_at(target, 3, like)
                        results[0], results[1], results[2] = values[0], values[1], values[2]
                    else:
                        for c in range(channels):
                            value = elements_at(source + c * source_step, 1, like)[0]
                            elements_at(target + c * target_step, 1, like)[0] = value
                    source += source_column
                    target += target_column


@inner
def _split(
    source: int, target: int, rows: int, columns: int, source_row: int, target_row: int, plane: int, like: np.generic
) -> None:
    """Copy pixels of three adjacent elements to three planes, whose starts are ``plane`` bytes apart. ``columns`` must be at least
    ``_LANES``.
    """
    size = np.int64(elements_at(0, 0, like).itemsize)
    stride = plane // size
    for _ in range(rows):
        pixels, planes = elements_at(source, 3 * columns, like), elements_at(target, 2 * stride + columns, like)
        x = 0
        while x < columns:
            # The last block overlaps the previous one, so that all blocks have the same size.
            x = min(x, columns - _LANES)
            copy_split(pixels, x * 3, planes, x, stride, _LANES)
            x += _LANES
        source += source_row
        target += target_row


@inner
def _join(
    source: int, target: int, rows: int, columns: int, source_row: int, target_row: int, plane: int, like: np.generic
) -> None:
    """Copy three planes, whose starts are ``plane`` bytes apart, to pixels of three adjacent elements. ``columns`` must be at least
    ``_LANES``.
    """
    size = np.int64(elements_at(0, 0, like).itemsize)
    stride = plane // size
    for _ in range(rows):
        planes, pixels = elements_at(source, 2 * stride + columns, like), elements_at(target, 3 * columns, like)
        x = 0
        while x < columns:
            x = min(x, columns - _LANES)
            copy_joined(planes, x, stride, pixels, x * 3, _LANES)
            x += _LANES
        source += source_row
        target += target_row


@inner
def _copy_in_tiles(image: np.record, inward: int, outward: int, rest: int, like: np.generic) -> None:
    """Copy elements in square tiles, so that each cache line is used completely before it is evicted."""
    rows, columns = image.extents[inward], image.extents[outward]
    source_row, source_column = image.source_strides[inward], image.source_strides[outward]
    target_row, target_column = image.target_strides[inward], image.target_strides[outward]
    for z in range(image.extents[rest]):
        source, target = image.source + z * image.source_strides[rest], image.target + z * image.target_strides[rest]
        for top in range(0, rows, _TILE):
            for left in range(0, columns, _TILE):
                for y in range(top, min(top + _TILE, rows)):
                    for x in range(left, min(left + _TILE, columns)):
                        value = elements_at(source + y * source_row + x * source_column, 1, like)[0]
                        elements_at(target + y * target_row + x * target_column, 1, like)[0] = value


@functools.lru_cache(maxsize=64)
def _alike(permutation: tuple[int, ...], element_bytes: int) -> tuple[np.ndarray, int]:
    """Return what samples with the same permutation and element size share: an array with one record, to be copied for each sample
    and completed with its shape, and the kernel's address.
    """
    record, rank = np.zeros(1, STORE), len(permutation)
    record["placement"]["channel_axis"], record["placement"]["element_bytes"] = -1, element_bytes
    record["permutation"][:, :rank] = permutation
    record["image_axes"] = range(rank - 3, rank)
    return record, address_of(_transpose, _NO_VALUES, IMAGES, np.dtype(f"u{element_bytes}"))


def transposing_stage(shapes: np.ndarray, permutation: Sequence[int], element_bytes: int) -> StageRecords:
    """Return the chain stages that transpose the samples of a batch.

    Args:
        shapes: the samples' shapes, int64 of shape (samples, rank); the rank must be at least ``MIN_RANK``.
        permutation: for each output dimension, the number of the input dimension.
        element_bytes: the number of bytes of an element: 1, 2, 4 or 8.
    """
    axes = tuple(permutation)
    if axes == tuple(range(len(axes))):
        return StageRecords(StageKind.PLACEMENT, placements(0, shapes, shapes, element_bytes), shapes, element_bytes)
    record, compute = _alike(axes, element_bytes)
    count, rank = shapes.shape
    records = record.repeat(count)
    placement = records["placement"]
    placement["shape"][:, :rank] = placement["shape_in"][:, :rank] = shapes
    outputs = shapes.take(axes, axis=1)
    return StageRecords(StageKind.STORE, records, outputs, element_bytes, compute=compute, permutation=axes)


def transpose(source: np.ndarray, permutation: Sequence[int], target: np.ndarray) -> None:
    """Set ``target[...] = source.transpose(permutation)``. Both arrays must have the same type; fastest if both are contiguous."""
    if source.ndim < MIN_RANK or not source.size:
        np.copyto(target, source.transpose(permutation))
        return
    stage = transposing_stage(np.array([source.shape]), permutation, source.itemsize)
    origin = (0,) * source.ndim
    compute_part(stage, array_part(source, origin), array_part(target, origin))
