"""Write the font of `draw_text` from X11's 9x18, which is in the public domain ("Public domain font. Share and enjoy.").

    apt-get download xfonts-base && dpkg-deb -x xfonts-base_*.deb fonts
    .venv/bin/python tests/operators/postprocessing/record_font.py fonts/usr/share/fonts/X11/misc/9x18.pcf.gz

The X Consortium's "The X11 Portable Compiled Font Format" describes the file. All glyphs of this font have the same size, so only two
of its tables are read: which glyph each character has, and the glyphs' bitmaps.
"""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[3] / "backend/penstock/operators/postprocessing/font_9x18.npz"
HEIGHT, BYTES_PER_ROW = 18, 4
BITMAPS, ENCODINGS = 1 << 3, 1 << 5
NO_GLYPH = 0xFFFF


def main(path: Path) -> None:
    """Write the glyphs of all characters, sorted by code."""
    content = gzip.decompress(path.read_bytes())
    (count,) = struct.unpack_from("<I", content, 4)
    tables = {kind: offset for kind, _, _, offset in struct.iter_unpack("<4I", content[8 : 8 + 16 * count])}
    glyphs = _glyphs(content, tables[BITMAPS])
    numbers = _numbers(content, tables[ENCODINGS])
    codes = np.flatnonzero(numbers != NO_GLYPH)
    np.savez_compressed(TARGET, codes=codes.astype(np.uint16), rows=glyphs[numbers[codes]])
    print(f"{TARGET}: {len(codes)} characters, {TARGET.stat().st_size} bytes")


def _order(content: bytes, table: int) -> str:
    return ">" if struct.unpack_from("<I", content, table)[0] & 4 else "<"


def _glyphs(content: bytes, table: int) -> np.ndarray:
    """Return the rows of each glyph, uint16 of shape (glyphs, 18); bit 8 is the leftmost of nine pixels."""
    order = _order(content, table)
    (count,) = struct.unpack_from(order + "I", content, table + 4)
    offsets = np.frombuffer(content, order + "u4", count, table + 8).astype(np.int64)
    begin = table + 8 + 4 * count + 16
    whole = np.frombuffer(content, np.uint8, offset=begin)
    rows = np.stack([whole[offset : offset + HEIGHT * BYTES_PER_ROW].reshape(HEIGHT, -1) for offset in offsets])
    return rows[..., 0].astype(np.uint16) << 1 | rows[..., 1] >> 7


def _numbers(content: bytes, table: int) -> np.ndarray:
    """Return each character's index in the table of glyphs, or NO_GLYPH."""
    order = _order(content, table)
    first, last, first_row, last_row = struct.unpack_from(order + "4H", content, table + 4)
    shape = last_row - first_row + 1, last - first + 1
    numbers = np.full((256, 256), NO_GLYPH)
    numbers[first_row : last_row + 1, first : last + 1] = np.frombuffer(
        content, order + "u2", shape[0] * shape[1], table + 14
    ).reshape(shape)
    return numbers.reshape(-1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
