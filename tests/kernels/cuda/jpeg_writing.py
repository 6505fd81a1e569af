"""Writes JPEGs from coefficients, with any sampling factors, even those that encoders do not use."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.jpeg.entropy import NATURAL_ORDER

# All symbols have codes of four or eight bits, as codes need not be short here. Luma and chroma have different tables.
_SIZES = list(range(12))
_RUNS = [0x00, 0xF0, *(run << 4 | size for run in range(16) for size in range(1, 11))]
_DC, _AC = (_SIZES, _SIZES[::-1]), (_RUNS, _RUNS[::-1])


def grid_of(size: tuple[int, int], factors: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of units (MCUs) in a column and in a row."""
    down, across = (max(own[axis] for own in factors) if len(factors) > 1 else 1 for axis in (1, 0))
    return -(-size[0] // (8 * down)), -(-size[1] // (8 * across))


def blocks_of(factors: Sequence[tuple[int, int]]) -> list[int]:
    """Return the number of the component of each block of a unit."""
    if len(factors) == 1:
        return [0]
    return [c for c, (across, down) in enumerate(factors) for _ in range(across * down)]


def write_jpeg(
    coefficients: np.ndarray,
    size: tuple[int, int],
    factors: Sequence[tuple[int, int]],
    quantizers: np.ndarray,
    interval: int = 0,
) -> np.ndarray:
    """Return a baseline JPEG file, uint8.

    Args:
        coefficients: the quantized coefficients, int16 of shape (units, blocks of a unit, 64). A block is in row order, not in zigzag
            order.
        size: height and width.
        factors: the horizontal and vertical sampling factor of each component.
        quantizers: the quantizers of each component, a row of 64; at most 255.
        interval: the number of units between restart markers; 0: there are no restart markers.
    """
    parts = [b"\xff\xd8", _segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")]
    order = np.asarray(NATURAL_ORDER)
    for c in range(len(factors)):
        parts.append(_segment(0xDB, bytes([c]) + quantizers[c][order].astype(np.uint8).tobytes()))
    frame = struct.pack(">BHHB", 8, *size, len(factors))
    for c, (across, down) in enumerate(factors):
        frame += bytes([c + 1, across << 4 | down, c])
    parts.append(_segment(0xC0, frame))
    for kind, length, tables in ((0x00, 4, _DC), (0x10, 8, _AC)):
        for number, symbols in enumerate(tables[: len(factors)]):
            counts = [len(symbols) if k == length else 0 for k in range(1, 17)]
            parts.append(_segment(0xC4, bytes([kind | number, *counts, *symbols])))
    if interval:
        parts.append(_segment(0xDD, struct.pack(">H", interval)))
    scan = bytes([len(factors)]) + b"".join(bytes([c + 1, 0x11 if c else 0]) for c in range(len(factors))) + b"\0\x3f\0"
    parts += [_segment(0xDA, scan), _scan(coefficients[:, :, order], blocks_of(factors), interval), b"\xff\xd9"]
    return np.frombuffer(b"".join(parts), np.uint8)


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _scan(units: np.ndarray, components: Sequence[int], interval: int) -> bytes:
    written, bits = bytearray(), ""
    predicted = [0] * len(components)
    for number, unit in enumerate(units.tolist()):
        if interval and number and number % interval == 0:
            written += _bytes(bits) + bytes([0xFF, 0xD0 + (number // interval - 1) % 8])
            bits, predicted = "", [0] * len(components)
        for c, block in zip(components, unit):
            dc, ac = _DC[c > 0], _AC[c > 0]
            size, value = _coded(block[0] - predicted[c])
            predicted[c] = block[0]
            bits += f"{dc.index(size):04b}{value}"
            run = 0
            for place in range(1, 64):
                if not block[place]:
                    run += 1
                    continue
                while run > 15:
                    bits += f"{ac.index(0xF0):08b}"
                    run -= 16
                size, value = _coded(block[place])
                bits += f"{ac.index(run << 4 | size):08b}{value}"
                run = 0
            if run:
                bits += f"{ac.index(0):08b}"
    return bytes(written + _bytes(bits))


def _coded(value: int) -> tuple[int, str]:
    """Return the number of bits of a value, and these bits."""
    size = abs(value).bit_length()
    return size, f"{value if value > 0 else value + (1 << size) - 1:0{size}b}" if size else ""


def _bytes(bits: str) -> bytes:
    """Return bits as bytes: the last byte is filled up with ones, and a zero byte is inserted after each byte 0xFF."""
    bits += "1" * (-len(bits) % 8)
    return bytes(int(bits[k : k + 8], 2) for k in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
