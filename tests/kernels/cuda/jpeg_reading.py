"""Reads the coefficients of baseline JPEGs bit by bit, as a reference for the kernels.

Source: ITU-T T.81, annexes B (markers), C (code tables), F.2 (decoding) and figure A.6 (the zig-zag sequence).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

ZIGZAG = sorted(range(64), key=lambda k: (k // 8 + k % 8, k // 8 if (k // 8 + k % 8) % 2 else k % 8))


class Damaged(Exception):
    """The file is not a valid baseline JPEG."""


class _Interval:
    """The data between two restart markers."""

    def __init__(self, data: bytes) -> None:
        self.bits = "".join(f"{byte:08b}" for byte in data.replace(b"\xff\0", b"\xff"))
        self.position = 0

    def take(self, count: int) -> str:
        self.position += count
        if self.position > len(self.bits):
            raise Damaged("ends early")
        return self.bits[self.position - count : self.position]

    def symbol(self, table: dict[str, int]) -> int:
        code = ""
        while code not in table:
            code += self.take(1)
            if len(code) > 16:
                raise Damaged("no code")
        return table[code]

    def value(self, size: int) -> int:
        bits = self.take(size)
        return 0 if not size else int(bits, 2) if bits[0] == "1" else int(bits, 2) - (1 << size) + 1

    def is_over(self) -> bool:
        return len(self.bits) - self.position < 8


def _segments(file: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield each marker, the contents of its segment, and the position of the segment's end."""
    place = 2
    while True:
        if file[place] != 0xFF:
            raise Damaged("no marker")
        while file[place + 1] == 0xFF:
            place += 1
        end = place + 2 + int.from_bytes(file[place + 2 : place + 4], "big")
        yield file[place + 1], file[place + 4 : end], end
        place = end


def _code_table(body: bytes) -> tuple[dict[str, int], int]:
    """Return the symbol of each code, and the number of bytes read."""
    table: dict[str, int] = {}
    code, place = 0, 16
    for length in range(1, 17):
        for _ in range(body[length - 1]):
            table[f"{code:0{length}b}"] = body[place]
            code, place = code + 1, place + 1
        code *= 2
    return table, place


def _intervals(data: bytes) -> list[_Interval]:
    """Return the data between restart markers, up to the end of the image."""
    parts, begin, place = [], 0, 0
    while True:
        place = data.find(b"\xff", place)
        if place < 0 or place + 1 == len(data):
            raise Damaged("no end of the image")
        marker = data[place + 1]
        if marker == 0xFF:
            data = data[:place] + data[place + 1 :]
        elif marker:
            parts.append(_Interval(data[begin:place]))
            if marker == 0xD9:
                return parts
            if marker != 0xD0 + (len(parts) - 1) % 8:
                raise Damaged("another marker")
            begin = place = place + 2
        else:
            place += 2


def read_jpeg(file: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients, int16 of shape (blocks, 64), and the component of each block.

    Raises:
        Damaged: the file ends early, has an invalid code, has too many coefficients in a block, or has unneeded bytes.
    """
    data = file.tobytes()
    tables: dict[int, dict[str, int]] = {}
    interval = 0
    factors: list[tuple[int, int]] = []
    size = 0, 0
    for marker, body, end in _segments(data):
        if marker == 0xC4:
            while body:
                tables[body[0]], taken = _code_table(body[1:])
                body = body[1 + taken :]
        elif marker == 0xC0:
            size = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
            factors = [(body[7 + 3 * c] >> 4, body[7 + 3 * c] & 15) for c in range(body[5])]
        elif marker == 0xDD:
            interval = int.from_bytes(body, "big")
        elif marker == 0xDA:
            chosen = [(body[2 + 2 * c] >> 4, 16 | body[2 + 2 * c] & 15) for c in range(body[0])]
            return _read_scan(
                _intervals(data[end:]), [(tables[dc], tables[ac]) for dc, ac in chosen], factors, size, interval
            )
    raise AssertionError


def _read_scan(
    intervals: list[_Interval],
    tables: list[tuple[dict[str, int], dict[str, int]]],
    factors: list[tuple[int, int]],
    size: tuple[int, int],
    interval: int,
) -> tuple[np.ndarray, np.ndarray]:
    if len(factors) == 1:
        factors = [(1, 1)]
    across, down = (max(own[axis] for own in factors) for axis in (0, 1))
    units = -(-size[0] // (8 * down)) * -(-size[1] // (8 * across))
    parts = [c for c, own in enumerate(factors) for _ in range(own[0] * own[1])]
    interval = interval or units
    if len(intervals) != -(-units // interval):
        raise Damaged("more or fewer restarts")
    blocks = np.zeros((units, len(parts), 64), np.int16)
    predicted = [0, 0, 0]
    for unit in range(units):
        reader = intervals[unit // interval]
        if unit % interval == 0:
            predicted = [0, 0, 0]
        for block, c in zip(blocks[unit], parts):
            predicted[c] += reader.value(reader.symbol(tables[c][0]))
            _read_block(reader, predicted[c], tables[c][1], block)
    if not all(reader.is_over() for reader in intervals):
        raise Damaged("bytes are left")
    return blocks.reshape(-1, 64), np.tile(parts, units)


def _read_block(reader: _Interval, first: int, table: dict[str, int], block: np.ndarray) -> None:
    block[0] = np.array(first).astype(np.int16)
    place = 0
    while place < 63:
        symbol = reader.symbol(table)
        if symbol == 0:
            return
        place += (symbol >> 4) + 1
        if place > 63:
            raise Damaged("more than a block")
        block[ZIGZAG[place]] = reader.value(symbol & 15)
