"""Reads the coefficients of JPEGs with halved chroma with the CPU's kernels; like :mod:`jpeg_reading`, but faster."""

from __future__ import annotations

import numpy as np

from penstock.kernels.codecs import jpeg_baseline
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.jpeg.entropy import FULL, decode_block, order_of
from penstock.kernels.cpu.jpeg.files import read_scan
from penstock.kernels.cpu.jpeg.scan import (
    BITS,
    COUNT,
    PLACE,
    Memory,
    Scan,
    at_end,
    begin_reading,
    begin_unit,
    is_beyond,
    put_reader,
)
from penstock.kernels.cpu.jpeg.segments import Segments
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.simd import at, pointer
from penstock.kernels.cpu.simd_integers import put
from penstock.kernels.cuda.jpeg_codes import SAFE_SUM

_BLOCKS, _LUMAS = 6, 4
# The number of elements after the last block; invalid values are written there.
_SLACK = 64
# Invalid values are written to the start of the next block, before that block is read.
_ORDER = order_of(np.arange(FULL), FULL)
# The limit of magnitudes, low enough that 32 bits hold the sum of 64 of them.
_LARGE = np.int32(1 << 20)


def read_coefficients(file: np.ndarray) -> np.ndarray | None:
    """Return blocks of 64 coefficients, unit by unit; None if the data are damaged, or decoders may differ about the pixels."""
    header = read_header(file)
    scratch, place = jpeg_baseline._scratch(file.size, header.width), file.__array_interface__["data"][0]
    blocks = -(-header.height // 16) * -(-header.width // 16) * _BLOCKS
    coefficients = np.empty(blocks * FULL + _SLACK, np.int16)
    if not _read_file(
        place, file.size, header.height, header.width, scratch.segments, scratch.data, scratch.memory, coefficients
    ):
        return None
    return coefficients[:-_SLACK].reshape(-1, FULL)


@kernel
def _read_file(
    place: int,
    size: int,
    height: int,
    width: int,
    segments: Segments,
    data: np.ndarray,
    memory: Memory,
    coefficients: np.ndarray,
) -> bool:
    end, scan = read_scan(place, size, height, width, 1, (0, 0, height, width), segments, data)
    return end > 0 and scan.across == 2 and scan.down == 2 and _read(scan, memory, coefficients)


@inner
def _read(scan: Scan, memory: Memory, coefficients: np.ndarray) -> bool:
    begin_reading(scan, memory, 0)
    across, down = -(-scan.width // 16), -(-scan.height // 16)
    per_row = across * _BLOCKS * FULL
    for row in range(down):
        own = coefficients[row * per_row : (row + 1) * per_row + _SLACK]
        own[:] = 0
        if not _read_units(scan, memory, across, own) or not _is_safe(own, across * _BLOCKS, scan.quantizers):
            return False
    return at_end(scan, memory)


@inner
def _read_units(scan: Scan, memory: Memory, count: int, coefficients: np.ndarray) -> bool:
    reader, predicted, ends = pointer(memory.reader), pointer(memory.predicted), pointer(scan.ends)
    data, tables, order, target = pointer(scan.data), pointer(scan.tables), pointer(_ORDER), pointer(coefficients)
    dc_tables, ac_tables, interval = pointer(scan.dc_tables), pointer(scan.ac_tables), scan.interval
    for unit in range(count):
        if not begin_unit(data, ends, interval, reader, predicted):
            return False
        place, bits, left = at(reader, PLACE), at(reader, BITS), at(reader, COUNT)
        invalid = np.uint64(0)
        for i in range(_BLOCKS):
            c = max(i - _LUMAS + 1, 0)
            start = np.uint64((unit * _BLOCKS + i) * FULL)
            dc, ac = np.uint64(at(dc_tables, c)), np.uint64(at(ac_tables, c))
            place, bits, left, value, reached = decode_block(
                data, place, bits, left, tables, dc, ac, at(predicted, c), target, start, order
            )
            put(predicted, c, value)
            invalid |= reached & np.uint64(FULL)
        put_reader(reader, place, bits, left)
        if invalid or is_beyond(ends, reader):
            return False
    return True


@inner
def _is_safe(coefficients: np.ndarray, blocks: int, quantizers: np.ndarray) -> bool:
    values, factors = pointer(coefficients), pointer(quantizers)
    for number in range(blocks):
        start, own = number * FULL, max(number % _BLOCKS - _LUMAS + 1, 0) * FULL
        # Check all columns together first, which is faster and usually suffices.
        if _sum_of_sizes(values, start, factors, own, 1, FULL) > SAFE_SUM:
            for column in range(8):
                if _sum_of_sizes(values, start + column, factors, own + column, 8, 8) > SAFE_SUM:
                    return False
    return True


@njit(inline="always", **OPTIONS)
def _sum_of_sizes(
    values: types.CPointer, start: int, factors: types.CPointer, own: int, step: int, count: int
) -> np.int32:
    """Return the sum of the absolute values of dequantized coefficients."""
    total = np.int32(0)
    for k in range(count):
        size = np.int32(at(values, start + k * step)) * np.int32(at(factors, own + k * step))
        total += min(max(size, -size), _LARGE)
    return total
