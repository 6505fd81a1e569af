"""Checks the numbers in the headers of PBM, PGM and PPM files.

Source: Netpbm, the manual pages pbm(5), pgm(5) and ppm(5).
"""

from __future__ import annotations

import re

from penstock.kernels.codecs.headers.declared import Declared, check, check_density

SIGNATURES = (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")
_BITMAPS, _COLOURS = (b"P1", b"P4"), (b"P3", b"P6")
_LONGEST_HEADER = 1 << 16
_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_NUMBER = re.compile(_GAP + rb"(\d{1,10})(?=[\s#]|$)")
# Each value takes at least a digit and a separator, or in binary files a bit per pixel, a byte, or two bytes for 16 bits.
_RATIO = 4


def check_pnm(data: memoryview) -> Declared:
    """Return the values that the header of a PBM, PGM or PPM declares; raise CorruptImageError for impossible ones."""
    start = bytes(data[:_LONGEST_HEADER])
    kind, position, numbers = start[:2], 2, []
    for _ in range(2 if kind in _BITMAPS else 3):
        found = _NUMBER.match(start, position)
        check(found is not None, "PNM: its header is truncated or holds something other than numbers")
        assert found is not None
        numbers.append(int(found[1]))
        position = found.end()
    width, height = numbers[:2]
    check(0 < width < 1 << 31 and 0 < height < 1 << 31, f"PNM: its size is {height}x{width}")
    maximum = 1 if kind in _BITMAPS else numbers[2]
    check(0 < maximum < 1 << 16, f"PNM: its greatest value is {maximum}")
    bits = 1 if kind in _BITMAPS else 8 if maximum < 256 else 16
    declared = Declared(height, width, 3 if kind in _COLOURS else 1, bits)
    check_density(declared, len(data), _RATIO, "PNM")
    return declared
