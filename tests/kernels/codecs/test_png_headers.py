"""Sizes of PNGs that are read in batches equal those that are read one by one."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from penstock.core import codecs
from penstock.kernels.codecs.headers.png import check_png
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import parse_header, read_header, read_png_headers, read_png_sizes

_MODES = ("L", "LA", "P", "RGB", "RGBA")


def encoded(mode: str = "RGB", size: tuple[int, int] = (30, 20), **options: object) -> bytes:
    """Return a PNG of ``size`` (width, height)."""
    file = io.BytesIO()
    image = Image.new(mode, size, 1)
    if mode == "P":
        # With fewer colours, Pillow would pack several pixels into a byte.
        image.putpalette(bytes(range(256)) * 3)
    image.save(file, "PNG", **options)
    return file.getvalue()


def found(*files: bytes) -> list[list[int]]:
    """Return the core's result for each file."""
    known = EncodedFiles([np.frombuffer(file, np.uint8) for file in files])
    sizes: list[list[int]] = codecs.read_png_sizes(known.places, known.sizes).tolist()
    return sizes


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("size", [(30, 20), (1, 1), (300, 7)])
def test_ordinary_files_are_read(mode: str, size: tuple[int, int]) -> None:
    file = encoded(mode, size)
    header = read_header(np.frombuffer(file, np.uint8))
    assert found(file) == [[header.height, header.width]] == [[size[1], size[0]]]


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_headers_of_plain_files_are_those_of_the_library(mode: str) -> None:
    for options in ({}, {"dpi": (72, 72)}, {"compress_level": 0}):
        file = np.frombuffer(encoded(mode, (33, 21), **options), np.uint8)
        assert check_png(file.data).is_plain
        assert read_header(file)._replace(memory=0) == parse_header(file)
        together = read_png_headers(EncodedFiles([file, file]))
        assert together is not None
        assert list(together) == [read_header(file)] * 2


def test_other_files_are_not_plain() -> None:
    for name, file in _unusual().items():
        if name == "without a signature":
            # The missing signature is noticed earlier.
            continue
        try:
            plain = check_png(memoryview(file)).is_plain
        except CorruptImageError:
            continue
        assert not plain, name
    assert not check_png(memoryview(encoded("RGB", transparency=(1, 2, 3)))).is_plain
    assert not check_png(memoryview(encoded("P"))).is_plain
    for file in (encoded("P"), encoded("RGB", transparency=(1, 2, 3))):
        assert read_png_headers(EncodedFiles([np.frombuffer(file, np.uint8)])) is None


def test_text_and_transparency_do_not_matter() -> None:
    plain = encoded("L", transparency=3, dpi=(72, 72))
    assert found(plain) == [[20, 30]]


def _unusual() -> dict[str, bytes]:
    exif = Image.Exif()
    exif[0x0112] = 6
    plain = encoded()
    animated = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(animated, "PNG", save_all=True, append_images=frames[1:])
    return {
        "turned": encoded(exif=exif.tobytes()),
        "16 bits": encoded("I;16"),
        "1 bit": encoded("1"),
        "animated": animated.getvalue(),
        "without an end": plain[:-12],
        "cut short": plain[:-30],
        "cut in its header": plain[:30],
        "followed by more": plain + bytes(8),
        "without a signature": b"\x00" + plain[1:],
        "of no width": plain[:16] + bytes(4) + plain[20:],
        "of an unknown colour type": plain[:25] + b"\x05" + plain[26:],
        "of an unknown filter": plain[:27] + b"\x01" + plain[28:],
        "empty": b"",
    }


@pytest.mark.parametrize("name", _unusual())
def test_unusual_files_are_left_alone(name: str) -> None:
    assert found(encoded(), _unusual()[name]) == [[20, 30], [0, 0]]
    files = EncodedFiles([np.frombuffer(file, np.uint8) for file in (encoded(), _unusual()[name])])
    assert read_png_sizes(files) is None
    assert read_png_headers(files) is None
