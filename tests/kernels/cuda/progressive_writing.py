"""Writes progressive JPEGs with any scan script, even those that Pillow cannot write.

Source: ITU-T T.81, annexes B (markers), C (code tables) and G (progressive coding).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

LONGEST_RUN = 0x7FFF


class Plane(NamedTuple):
    """The quantized coefficients of a component, of shape (rows, columns, 64), in zigzag order and filled up to whole units.

    Attributes:
        across, down: the component's horizontal and vertical sampling factors.
    """

    blocks: np.ndarray
    across: int
    down: int


class ScanOf(NamedTuple):
    """A scan: its components, its first and last coefficients, and the lowest bit that is known before it and after it."""

    components: tuple[int, ...]
    first: int
    last: int
    before: int
    level: int


Token = tuple[int | None, str]
"""A symbol, or None, and the bits that follow it."""


def write(height: int, width: int, planes: Sequence[Plane], script: Sequence[ScanOf], interval: int = 0) -> np.ndarray:
    """Return the file. All quantizers are 3, and there is a restart marker after every ``interval`` units."""
    parts = [b"\xff\xd8", _segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"), _segment(0xDB, bytes([0] + [3] * 64))]
    frame = b"".join(bytes([c + 1, plane.across << 4 | plane.down, 0]) for c, plane in enumerate(planes))
    size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    parts.append(_segment(0xC2, b"\x08" + size + bytes([len(planes)]) + frame))
    if interval:
        parts.append(_segment(0xDD, interval.to_bytes(2, "big")))
    for scan in script:
        units = list(_units(height, width, planes, scan.components))
        intervals = [units[i : i + interval or None] for i in range(0, len(units), interval or len(units))]
        tokens = [_tokens(planes, scan, some) for some in intervals]
        codes, table = _codes(sorted({symbol for some in tokens for symbol, _ in some if symbol is not None}))
        if table:
            parts.append(_segment(0xC4, bytes([0x10 if scan.first else 0]) + table))
        chosen = b"".join(bytes([c + 1, 0]) for c in scan.components)
        ends = bytes([scan.first, scan.last, scan.before << 4 | scan.level])
        parts.append(_segment(0xDA, bytes([len(scan.components)]) + chosen + ends))
        for number, some in enumerate(tokens):
            bits = "".join(("" if symbol is None else codes[symbol]) + rest for symbol, rest in some)
            bits += "1" * (-len(bits) % 8)
            parts.append(int(bits or "0", 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0"))
            if number + 1 < len(tokens):
                parts.append(bytes([0xFF, 0xD0 + number % 8]))
    return np.frombuffer(b"".join(parts) + b"\xff\xd9", np.uint8)


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body


def _codes(symbols: list[int]) -> tuple[dict[int, str], bytes]:
    """Return the code of each symbol, and the code table in the form of files. Up to three symbols get short codes, the others long
    ones.
    """
    short, others = symbols[:3], symbols[3:]
    codes = {symbol: f"{number:02b}" for number, symbol in enumerate(short)}
    codes |= {symbol: f"11{number:010b}" for number, symbol in enumerate(others)}
    lengths = [0] * 16
    lengths[1], lengths[11] = len(short), len(others)
    return codes, bytes(lengths) + bytes(symbols) if symbols else b""


def _units(
    height: int, width: int, planes: Sequence[Plane], components: tuple[int, ...]
) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the blocks of each unit of a scan, each as its component, row and column."""
    across, down = max(plane.across for plane in planes), max(plane.down for plane in planes)
    if len(components) == 1:
        plane = planes[components[0]]
        rows, columns = -(-height * plane.down // (8 * down)), -(-width * plane.across // (8 * across))
        yield from ([(components[0], row, column)] for row in range(rows) for column in range(columns))
        return
    for row in range(-(-height // (8 * down))):
        for column in range(-(-width // (8 * across))):
            yield [
                (c, row * planes[c].down + y, column * planes[c].across + x)
                for c in components
                for y in range(planes[c].down)
                for x in range(planes[c].across)
            ]


def _tokens(planes: Sequence[Plane], scan: ScanOf, units: list[list[tuple[int, int, int]]]) -> list[Token]:
    blocks = [(c, planes[c].blocks[row, column].tolist()) for unit in units for c, row, column in unit]
    if scan.first == 0:
        return _direct(scan, blocks)
    band = [block for _, block in blocks]
    return _corrections(scan, band) if scan.before else _band(scan, band)


def _direct(scan: ScanOf, blocks: list[tuple[int, list[int]]]) -> list[Token]:
    tokens: list[Token] = []
    last: dict[int, int] = {}
    for c, block in blocks:
        value = block[0] >> scan.level
        if scan.before:
            tokens.append((None, str(value & 1)))
            continue
        difference = value - last.get(c, 0)
        last[c] = value
        tokens.append((abs(difference).bit_length(), _value(difference)))
    return tokens


def _value(value: int) -> str:
    """Return the bits of a value; for a negative value, the complement of its magnitude's bits."""
    size = abs(value).bit_length()
    return f"{value if value > 0 else value + (1 << size) - 1:0{size}b}" if size else ""


def _end_of_run(run: int, bits: str) -> list[Token]:
    if not run:
        return []
    size = run.bit_length() - 1
    return [(size << 4, (f"{run - (1 << size):0{size}b}" if size else "") + bits)]


def _band(scan: ScanOf, blocks: list[list[int]]) -> list[Token]:
    tokens: list[Token] = []
    run = 0
    for block in blocks:
        zeros = 0
        for k in range(scan.first, scan.last + 1):
            value = (abs(block[k]) >> scan.level) * (1 if block[k] > 0 else -1)
            if value == 0:
                zeros += 1
                continue
            tokens += _end_of_run(run, "") + [(0xF0, "")] * (zeros // 16)
            run, size = 0, abs(value).bit_length()
            tokens.append((zeros % 16 << 4 | size, _value(value)))
            zeros = 0
        run += zeros > 0
        if run == LONGEST_RUN:
            tokens += _end_of_run(run, "")
            run = 0
    return tokens + _end_of_run(run, "")


def _corrections(scan: ScanOf, blocks: list[list[int]]) -> list[Token]:
    tokens: list[Token] = []
    run, of_run = 0, ""
    for block in blocks:
        sizes = [abs(value) >> scan.level for value in block]
        new = [k for k in range(scan.first, scan.last + 1) if sizes[k] == 1]
        zeros, bits = 0, ""
        for k in range(scan.first, scan.last + 1):
            if sizes[k] == 0:
                zeros += 1
                continue
            while zeros > 15 and new and k <= new[-1]:
                tokens += [*_end_of_run(run, of_run), (0xF0, bits)]
                run, of_run, bits, zeros = 0, "", "", zeros - 16
            if sizes[k] > 1:
                bits += str(sizes[k] & 1)
                continue
            tokens += [*_end_of_run(run, of_run), (zeros << 4 | 1, ("1" if block[k] > 0 else "0") + bits)]
            run, of_run, bits, zeros = 0, "", "", 0
        if zeros or bits:
            run, of_run = run + 1, of_run + bits
            if run == LONGEST_RUN:
                tokens += _end_of_run(run, of_run)
                run, of_run = 0, ""
    return tokens + _end_of_run(run, of_run)
