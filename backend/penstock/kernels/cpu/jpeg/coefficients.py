"""The coefficients of a progressive JPEG, which are encoded by several scans, and the computation of samples from them.

A scan that refines coefficients has one bit for each nonzero coefficient, and says which zeros become nonzero. For each block, a
64-bit word marks the nonzero coefficients, and further words hold the refining bits until the block is transformed. So refining
scans need not read the coefficients, most of which are not in the cache. The bits of a word are in zig-zag order, with the first
coefficient in the lowest bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.code_generation import Vector, types
from penstock.kernels.cpu.jpeg.entropy import FULL, NATURAL_ORDER
from penstock.kernels.cpu.jpeg.transform import (
    FULL_SIZE,
    IN_FOUR_ROWS,
    LANES,
    OTHER,
    PAIR,
    PLACES,
    transform_all,
    transform_low,
    transform_reduced,
)
from penstock.kernels.cpu.options import OPTIONS, inner, njit
from penstock.kernels.cpu.simd import at, pointer
from penstock.kernels.cpu.simd_integers import gather_bits, load, with_first_lanes, zeros_short

LEVELS = 3
"""The maximum number of low bits of AC coefficients that later scans may refine."""

(
    FIRST_BLOCK,
    PER_ROW,
    BLOCKS_ACROSS,
    BLOCKS_DOWN,
    FIRST_ROW,
    FIRST_COLUMN,
    KEPT_ROWS,
    KEPT_COLUMNS,
    PAIRS,
    BEGIN,
    PLANE_COLUMNS,
) = range(11)
"""Columns that describe a plane: the number of its first block; the number of blocks per row; the numbers of columns and of rows of
blocks that hold pixels. Of the blocks whose coefficients are stored: the first row and column, the numbers of rows and of columns, the
number of pairs per row, and the offset of their coefficients.
"""


class Coefficients(NamedTuple):
    """The coefficients of an image.

    Attributes:
        planes: the description of each component's plane, in rows; int64. No rows: the image is not progressive.
        values: the AC coefficients as first encoded, before refinement, in pairs of blocks, in the order of ``PLACES``; int16.
        direct: the DC coefficient of each block; int16.
        nonzero: for each block, a mask of the nonzero coefficients; uint64.
        corrections: for each block, ``LEVELS`` masks, from the lowest bit on: the coefficients to which a scan adds that bit; uint64.
    """

    planes: np.ndarray
    values: np.ndarray
    direct: np.ndarray
    nonzero: np.ndarray
    corrections: np.ndarray


@inner
def memory_for_coefficients(planes: np.ndarray) -> Coefficients:
    """Return zeros for the coefficients of these planes, and fill in ``FIRST_BLOCK`` and ``BEGIN`` of each plane."""
    blocks, values = 0, 0
    for c in range(len(planes)):
        plane = planes[c]
        plane[FIRST_BLOCK], plane[BEGIN] = blocks, values
        # A unit has at most four rows of blocks, of which at least one holds pixels.
        blocks += plane[PER_ROW] * (plane[BLOCKS_DOWN] + 3)
        values += plane[KEPT_ROWS] * plane[PAIRS] * PAIR
    # The second block of the last pair may lie beyond the plane's last block.
    count = blocks + 1 if blocks else 0
    return Coefficients(
        planes,
        np.zeros(values, np.int16),
        np.zeros(count, np.int16),
        np.zeros(count, np.uint64),
        np.zeros(count * LEVELS, np.uint64),
    )


# The zig-zag number of each position of a pair's first block. For each vector of a pair, an integer packs the numbers of the lanes that
# belong to the first block.
_NUMBERS = np.zeros(PAIR, np.uint8)
_NUMBERS[PLACES[NATURAL_ORDER]] = np.arange(FULL)
_BITS_0, _BITS_1, _BITS_2, _BITS_3, _BITS_4, _BITS_5, _BITS_6, _BITS_7 = (
    int.from_bytes(_NUMBERS[start : start + OTHER].tobytes(), "little") for start in range(0, PAIR, LANES)
)

_Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]


@njit(inline="always", **OPTIONS)
def _corrected(values: types.CPointer, start: int, words: _Words, bits: int) -> Vector:
    """Return a vector of coefficients of a pair of blocks, with the refining bits added to their magnitudes."""
    first = load(values, start, LANES)
    signs = first >> 15
    return first + ((gather_bits(words, bits) ^ signs) - signs)


@inner
def transform_row(
    coefficients: Coefficients,
    c: int,
    row: int,
    quantizers: types.CPointer,
    base: int,
    samples: types.CPointer,
    place: int,
    stride: int,
    nowhere: int,
    size: int,
) -> Vector:
    """Compute the samples of the stored blocks in a row of blocks of a component.

    Args:
        c: the number of the component.
        row: the number of the row of blocks.
        quantizers: a pointer to int16: the component's quantizers for a pair of blocks, from ``base`` on.
        samples: a pointer to uint8: the memory to fill, from ``place`` on, in rows ``stride`` bytes apart.
        nowhere: the offset in ``samples`` of scratch memory, for the second block of a pair if it does not exist.
        size: the number of rows, and of columns, of samples in each block.

    Returns:
        A vector in which some lane is negative if an intermediate result was out of range.
    """
    plane, sizes = coefficients.planes[c], zeros_short(LANES)
    values, direct = pointer(coefficients.values), pointer(coefficients.direct)
    nonzero, corrections = pointer(coefficients.nonzero), pointer(coefficients.corrections)
    block = plane[FIRST_BLOCK] + row * plane[PER_ROW] + plane[FIRST_COLUMN]
    start, count = plane[BEGIN] + (row - plane[FIRST_ROW]) * plane[PAIRS] * PAIR, plane[KEPT_COLUMNS]
    for column in range(0, count, 2):
        other_place, other_stride = place + size, stride
        if column + 1 == count:
            other_place, other_stride = nowhere, 8
        known, word = at(nonzero, block) | at(nonzero, block + 1), LEVELS * block
        words = (
            at(corrections, word),
            at(corrections, word + 1),
            at(corrections, word + 2),
            at(corrections, word + 3),
            at(corrections, word + 4),
            at(corrections, word + 5),
        )
        c0 = with_first_lanes(_corrected(values, start, words, _BITS_0), at(direct, block), at(direct, block + 1))
        c0 = c0 * load(quantizers, base, LANES)
        c2 = _corrected(values, start + 32, words, _BITS_2) * load(quantizers, base + 32, LANES)
        if known >> np.uint64(IN_FOUR_ROWS) == 0 and size == FULL_SIZE:
            sizes = sizes | transform_low(c0, c2, samples, place, stride, other_place, other_stride)
        else:
            c1 = _corrected(values, start + 16, words, _BITS_1) * load(quantizers, base + 16, LANES)
            c3 = _corrected(values, start + 48, words, _BITS_3) * load(quantizers, base + 48, LANES)
            c4 = _corrected(values, start + 64, words, _BITS_4) * load(quantizers, base + 64, LANES)
            c5 = _corrected(values, start + 80, words, _BITS_5) * load(quantizers, base + 80, LANES)
            c6 = _corrected(values, start + 96, words, _BITS_6) * load(quantizers, base + 96, LANES)
            c7 = _corrected(values, start + 112, words, _BITS_7) * load(quantizers, base + 112, LANES)
            eight = c0, c1, c2, c3, c4, c5, c6, c7
            if size < FULL_SIZE:
                sizes = sizes | transform_reduced(eight, size, samples, place, stride, other_place, other_stride)
            else:
                sizes = sizes | transform_all(eight, samples, place, stride, other_place, other_stride)
        block += 2
        start += PAIR
        place += 2 * size
    return sizes
