"""The pixels of plain TIFFs are copied: they, and errors, are the same as those of other decoders."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image
from test_bmp import check_equal
from test_png import TYPES

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.headers.tiff import plain_rows
from penstock.kernels.windows import Region

RNG = np.random.default_rng(0)
TAGS = {254: 0, 256: 5, 257: 7, 258: (8, 8, 8), 259: 1, 262: 2, 273: 0, 277: 3, 278: 7, 279: 105, 284: 1}


def tiff(order: str = "<", gap: int = 0, following: int = 0, **changes: Any) -> bytes:
    """Return a file of 7 x 5 random pixels. ``changes``: values of tags; a name is a letter and the tag's number."""
    pixels = np.random.default_rng(1).integers(0, 256, 105, np.uint8).tobytes()
    tags = dict(sorted((TAGS | {int(name[1:]): value for name, value in changes.items()}).items()))
    tags = {tag: value for tag, value in tags.items() if value is not None}
    room = 8 + 2 + 12 * len(tags) + 4
    extra, entries = b"", b""
    tags[273] = tags[273] or room + 64
    for tag, value in tags.items():
        values = value if isinstance(value, tuple) else (value,)
        kind, code = (3, "H") if max(values) < 1 << 16 else (4, "I")
        packed = struct.pack(f"{order}{len(values)}{code}", *values)
        if len(packed) > 4:
            place, extra = room + len(extra), extra + packed
            packed = struct.pack(order + "I", place)
        entries += struct.pack(order + "HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
    start = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    directory = struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", following)
    return start + directory + extra.ljust(64, b"\0") + pixels[:15] + bytes(gap) + pixels[15:]


def is_plain(file: bytes) -> bool:
    return plain_rows(np.frombuffer(file, np.uint8)) is not None


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (300, 401)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_files_of_pillow(size: tuple[int, int], order: str) -> None:
    pixels, file = RNG.integers(0, 256, (*size, 3), np.uint8), io.BytesIO()
    Image.fromarray(pixels).save(file, "TIFF")
    assert is_plain(file.getvalue())
    for output_type in TYPES:
        check_equal(file.getvalue(), output_type)
        check_equal(file.getvalue(), output_type, np.float32)
    np.testing.assert_array_equal(check_equal(file.getvalue()), pixels)
    region = Region((size[0] // 2, size[1] // 2), (1, 1))
    check_equal(file.getvalue(), DALIImageType.RGB, np.uint8, region)
    assert is_plain(tiff(order))
    check_equal(tiff(order))


def test_strips() -> None:
    start = 8 + 2 + 12 * len(TAGS) + 4 + 64
    strips = {"t278": 3, "t273": (start, start + 45, start + 90), "t279": (45, 45, 15)}
    assert is_plain(tiff(**strips))
    check_equal(tiff(**strips))
    for changes in (
        {"t273": (start, start + 45, start + 91)},
        {"t279": (45, 45, 14)},
        {"t279": (45, 45)},
        {"t278": 2},
        {"t278": 0},
    ):
        assert not is_plain(tiff(**(strips | changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"t259": 5},
        {"t262": 6},
        {"t258": (8, 8, 16)},
        {"t277": 4},
        {"t284": 2},
        {"t274": 6},
        {"t339": (2, 2, 2)},
        {"t322": 16},
        {"t338": 1},
        {"t279": None},
        {"following": 8},
        {"t273": 1 << 20},
        {"t257": 8},
    ],
)
def test_other_files_are_left(changes: dict[str, Any]) -> None:
    file = tiff(**changes)
    assert not is_plain(file)


def test_bad_files_have_the_same_outcome() -> None:
    whole = tiff()
    for size in range(10, len(whole), 17):
        check_equal(whole[:size])
    for _ in range(150):
        changed = bytearray(whole)
        changed[RNG.integers(4, 140)] = RNG.choice([0, 1, 2, 3, 8, 127, 128, 255])
        check_equal(bytes(changed))
