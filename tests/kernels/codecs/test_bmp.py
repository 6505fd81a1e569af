"""The pixels of plain BMPs are copied: they, and errors, are the same as those of other decoders."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from test_png import TYPES, Outcome, outcome

from penstock.data_types import DALIImageType
from penstock.kernels.codecs import image_codec
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.windows import Region


def bmp(height: int, width: int, bits: int = 24, header: int = 40, gap: int = 0, compression: int = 0) -> bytes:
    """Return a file of random pixels; if the height is negative, rows are stored from the top."""
    rng = np.random.default_rng(abs(height) * width)
    row_bytes = (width * bits + 31) // 32 * 4
    pixels = rng.integers(0, 256, row_bytes * abs(height), np.uint8).tobytes()
    palette = rng.integers(0, 256, 4 << bits, np.uint8).tobytes() if bits <= 8 else b""
    info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(pixels), 2835, 2835, 0, 0)
    info = info.ljust(header, b"\0") + palette + bytes(gap)
    return struct.pack("<2sIHHI", b"BM", 14 + len(info) + len(pixels), 0, 0, 14 + len(info)) + info + pixels


def check_equal(file: bytes, *arguments: Any) -> Outcome:
    """Compare with the other decoders; return the common result."""
    ours = outcome(file, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_codec, "_copy_plain", lambda *arguments: False)
        theirs = outcome(file, *arguments)
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(ours, np.ndarray):
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs
    return ours


@pytest.mark.parametrize("header", [40, 52, 56, 108, 124])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 5), (-7, 5), (200, 34), (-65, 35), (3, 4)])
def test_plain_files(height: int, width: int, header: int) -> None:
    for output_type in TYPES:
        check_equal(bmp(height, width, header=header), output_type)
        check_equal(bmp(height, width, header=header, gap=6), output_type, np.float32)
    whole = check_equal(bmp(height, width, header=header))
    assert isinstance(whole, np.ndarray)
    region = Region((abs(height) // 2, width // 2), (1, 1))
    np.testing.assert_array_equal(
        check_equal(bmp(height, width, header=header), DALIImageType.RGB, np.uint8, region),
        whole[abs(height) // 2 :][:1, width // 2 :][:, :1],
    )


def test_other_depths() -> None:
    for bits in (1, 4, 8, 16, 32):
        for output_type in TYPES:
            check_equal(bmp(9, 11, bits), output_type)


@pytest.mark.parametrize("height", [12, -12])
def test_the_last_row_may_lack_padding(height: int) -> None:
    """A row has 27 bytes of pixels and one of padding."""
    whole = bmp(height, 9)
    expected = outcome(whole)
    assert isinstance(expected, np.ndarray)
    np.testing.assert_array_equal(outcome(whole[:-1]), expected)


@pytest.mark.parametrize("bits", [1, 4, 8, 16, 24, 32])
def test_files_whose_last_pixels_are_missing_are_refused(bits: int) -> None:
    """For 24 bits, nvImageCodec shifts all rows by what is missing."""
    for cut in (4, 20):
        with pytest.raises(CorruptImageError, match=r"pixels end at byte \d+, but the file has \d+ bytes"):
            read_header(np.frombuffer(bmp(12, 10, bits)[:-cut], np.uint8))


def test_bad_files_have_the_same_outcome() -> None:
    whole, rng = bmp(12, 9), np.random.default_rng(0)
    for size in range(10, len(whole), 7):
        check_equal(whole[:size])
    for _ in range(600):
        changed = bytearray(whole)
        changed[rng.integers(2, 54)] = rng.choice([0, 1, 2, 8, 24, 54, 127, 128, 255])
        check_equal(bytes(changed))
    check_equal(whole + bytes(9))
    check_equal(bmp(12, 9, compression=3))
