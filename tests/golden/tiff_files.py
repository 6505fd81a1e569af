"""Writes unusual TIFFs: any number of bits and channels, planes, byte orders.

Source: Adobe, TIFF Revision 6.0 (1992), sections 2, 3, 8 and 19.
"""

from __future__ import annotations

import struct

import numpy as np

HEIGHT, WIDTH = 5, 7
UNSIGNED, REAL = 1, 3
_GRAY, _RGB = 1, 2
_SHORT, _LONG = 3, 4
_CODES = {_SHORT: "H", _LONG: "I"}


def tiff(
    pixels: np.ndarray, bits: int, *, planar: bool = False, kind: int = UNSIGNED, order: str = "<", extra: int = 0
) -> bytes:
    """Return an uncompressed TIFF, with all pixels in one strip or, if ``planar``, with one strip per channel.

    Args:
        pixels: an array of shape (H, W, C). If C is 3 or 4, the first three channels are colours; otherwise, the first one is grey.
        bits: the number of bits per value.
        planar: whether the file contains the channels one after the other.
        kind: the kind of the values, `UNSIGNED` or `REAL`.
        order: the byte order, ``"<"`` or ``">"``.
        extra: the meaning of the other channels: 0 for unspecified, 2 for alpha.
    """
    height, width, channels = pixels.shape
    planes = np.moveaxis(pixels, 2, 0) if planar else pixels.reshape(1, height, width * channels)
    strips = [_packed(plane, bits, kind, order) for plane in planes]
    starts = np.cumsum([8, *map(len, strips)]).tolist()
    colours = 3 if channels in (3, 4) else 1
    tags = [
        (256, _LONG, [width]),
        (257, _LONG, [height]),
        (258, _SHORT, [bits] * channels),
        (259, _SHORT, [1]),
        (262, _SHORT, [_RGB if colours == 3 else _GRAY]),
        (273, _LONG, starts[:-1]),
        (277, _SHORT, [channels]),
        (278, _LONG, [height]),
        (279, _LONG, list(map(len, strips))),
        (284, _SHORT, [1 + planar]),
        *([(338, _SHORT, [extra] * (channels - colours))] if channels > colours else []),
        (339, _SHORT, [kind] * channels),
    ]
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", starts[-1])
    return head + b"".join(strips) + _directory(tags, starts[-1], order)


def _packed(rows: np.ndarray, bits: int, kind: int, order: str) -> bytes:
    """Return the rows' values as bytes, without gaps between values; each row begins at a whole byte."""
    if bits % 8 == 0:
        return np.ascontiguousarray(rows).astype(f"{order}{'f' if kind == REAL else 'u'}{bits // 8}").tobytes()
    single = rows[..., np.newaxis] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(single.reshape(len(rows), -1).astype(np.uint8), axis=1).tobytes()


def _directory(tags: list[tuple[int, int, list[int]]], start: int, order: str) -> bytes:
    table, beyond = b"", b""
    end = start + 2 + 12 * len(tags) + 4
    for tag, kind, values in tags:
        content = struct.pack(f"{order}{len(values)}{_CODES[kind]}", *values)
        if len(content) > 4:
            place = struct.pack(order + "I", end + len(beyond))
            content, beyond = place, beyond + content
        table += struct.pack(order + "HHI", tag, kind, len(values)) + content.ljust(4, b"\0")
    return struct.pack(order + "H", len(tags)) + table + bytes(4) + beyond


def unusual_tiffs() -> dict[str, bytes]:
    """Return the files' contents by name; names state bits, channels, and other unusual properties."""
    generator = np.random.default_rng(0)

    def pixels(bits: int, channels: int) -> np.ndarray:
        return generator.integers(0, 2**bits, (HEIGHT, WIDTH, channels))

    files = {f"{bits}x{channels}": tiff(pixels(bits, channels), bits) for bits in (10, 12, 14) for channels in (1, 3)}
    files |= {f"1x{channels}": tiff(pixels(1, channels), 1) for channels in (1, 3)}
    files |= {f"{bits}x{channels}": tiff(pixels(bits, channels), bits) for bits in (8, 16) for channels in (4, 5, 6, 8)}
    files |= {f"8x{channels}_planar": tiff(pixels(8, channels), 8, planar=True) for channels in (2, 3, 4)}
    files["12x3_big_endian"] = tiff(pixels(12, 3), 12, order=">")
    files["32x6_real"] = tiff(generator.random((HEIGHT, WIDTH, 6)), 32, kind=REAL)
    return files
