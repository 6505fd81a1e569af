"""Writes PNG files of every kind, as no library writes them all."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""The number of channels by colour type."""
KINDS = [
    (0, 1),
    (0, 2),
    (0, 4),
    (0, 8),
    (0, 16),
    (2, 8),
    (2, 16),
    (3, 1),
    (3, 2),
    (3, 4),
    (3, 8),
    (4, 8),
    (4, 16),
    (6, 8),
    (6, 16),
]
"""All colour types and bits that the specification allows."""
_PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
_PAETH = 4


class PngKind(NamedTuple):
    """The properties of a file to make.

    Attributes:
        colour_type, bits: the colour type and bit depth, as the specification numbers them.
        height, width: the height and width of the image.
        filters: the filters of the rows, repeated cyclically.
        interlaced: whether it is stored in seven passes.
        parts: the number of IDAT chunks that the data are split into.
        before: chunks between the header, or the palette, and the data.
        after: chunks between the data and the end.
    """

    colour_type: int
    bits: int
    height: int = 13
    width: int = 17
    filters: Sequence[int] = (0, 1, 2, 3, 4)
    interlaced: bool = False
    parts: int = 1
    before: Sequence[tuple[bytes, bytes]] = ()
    after: Sequence[tuple[bytes, bytes]] = ()


def chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk with its checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def file_of(chunks: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return a file of these chunks."""
    return SIGNATURE + b"".join(itertools.starmap(chunk, chunks))


def png(kind: PngKind, seed: int = 0) -> bytes:
    """Return a PNG file of the given kind, with random smooth pixels."""
    return file_of(png_chunks(kind, seed))


def png_chunks(kind: PngKind, seed: int = 0) -> list[tuple[bytes, bytes]]:
    """Return the chunks of a PNG file of the given kind."""
    rng = np.random.default_rng(seed)
    data = zlib.compress(filtered(kind, rng))
    starts = np.linspace(0, len(data), kind.parts + 1).astype(int)
    size = struct.pack(">II", kind.width, kind.height)
    header = size + bytes([kind.bits, kind.colour_type, 0, 0, kind.interlaced])
    palette = [(b"PLTE", rng.integers(0, 256, 3 << kind.bits, np.uint8).tobytes())] if kind.colour_type == 3 else []
    parts = [(b"IDAT", data[start:end]) for start, end in itertools.pairwise(starts)]
    return [(b"IHDR", header), *palette, *kind.before, *parts, *kind.after, (b"IEND", b"")]


def filtered(kind: PngKind, rng: np.random.Generator) -> bytes:
    """Return the filtered rows of a random image, ready to be compressed."""
    channels = CHANNELS[kind.colour_type]
    steps = rng.integers(-9, 10, (kind.height, kind.width, channels))
    values = (np.cumsum(steps, axis=1) + np.cumsum(steps, axis=0)) * (1 << kind.bits) // 100 % (1 << kind.bits)
    parts = [values[top::down, left::across] for top, left, down, across in _PASSES] if kind.interlaced else [values]
    filters = itertools.cycle(kind.filters)
    return b"".join(_filtered(_packed(part, kind.bits), kind, filters) for part in parts if part.size)


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Return rows of values packed into bytes."""
    rows = values.reshape(len(values), -1)
    if bits >= 8:
        return rows.astype(f">u{bits // 8}").view(np.uint8)
    places = rows[..., np.newaxis] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(places.reshape(len(rows), -1).astype(np.uint8), axis=1)


def _filtered(rows: np.ndarray, kind: PngKind, filters: Iterator[int]) -> bytes:
    step = max(CHANNELS[kind.colour_type] * kind.bits // 8, 1)
    above, result = np.zeros(rows.shape[1], int), b""
    for row in rows.astype(int):
        left, corner = (np.concatenate([np.zeros(step, int), line])[: len(row)] for line in (row, above))
        number = next(filters)
        guess = [0 * row, left, above, (left + above) // 2, _paeth(left, above, corner)][min(number, _PAETH)]
        result += bytes([number]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = row
    return result


def _paeth(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    estimate = left + above - corner
    to_left, to_above, to_corner = (abs(estimate - value) for value in (left, above, corner))
    return np.where(
        (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
    )
