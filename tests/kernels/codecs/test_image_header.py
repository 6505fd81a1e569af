"""Headers of encoded images: sizes, channels, orientations, errors."""

import io

import numpy as np
import pytest
from PIL import Image

from penstock import types
from penstock.kernels.codecs.image_header import (
    UPRIGHT,
    CorruptImageError,
    NotAnImageError,
    Orientation,
    read_header,
)
from penstock.kernels.windows import Region


def _saved(image: Image.Image, kind: str, **options: object) -> np.ndarray:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _gradient(mode: str = "RGB") -> Image.Image:
    return Image.fromarray(np.add.outer(np.arange(40), np.arange(30)).astype(np.uint8)).convert(mode)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "TIFF", "WEBP", "PPM", "GIF"])
def test_tells_size_and_channels(kind: str) -> None:
    header = read_header(_saved(_gradient(), kind))
    assert (header.height, header.width, header.channels) == (40, 30, 3)
    assert header.shape(types.RGB) == (40, 30, 3)
    assert header.shape(types.GRAY) == (40, 30, 1)


@pytest.mark.parametrize(
    ("kind", "mode", "channels"), [("JPEG", "L", 1), ("JPEG", "CMYK", 4), ("PNG", "RGBA", 4), ("PNG", "LA", 2)]
)
def test_any_data_keeps_the_stored_channels(kind: str, mode: str, channels: int) -> None:
    assert read_header(_saved(_gradient(mode), kind)).shape(types.ANY_DATA) == (40, 30, channels)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_found_in_every_format(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    header = read_header(_saved(_gradient(), kind, exif=exif))
    assert header.shape(types.RGB) == ((30, 40, 3) if orientation >= 5 else (40, 30, 3))
    assert header.shape(types.RGB, adjust_orientation=False) == (40, 30, 3)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("flip_y", [False, True])
@pytest.mark.parametrize("flip_x", [False, True])
def test_a_region_is_stored_where_the_upright_view_finds_it(transposed: bool, flip_y: bool, flip_x: bool) -> None:
    orientation = Orientation(transposed, flip_y, flip_x)
    stored = np.arange(7 * 5).reshape(7, 5)
    upright = orientation.upright(stored)
    region = orientation.stored_region(Region((1, 2), (3, 2)), *upright.shape)
    part = stored[region.overlap(stored.shape)[0]]
    np.testing.assert_array_equal(orientation.upright(part), upright[1:4, 2:4])


def test_damaged_exif_is_ignored() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = _saved(_gradient(), "JPEG", exif=exif).copy()
    start = data.tobytes().index(b"Exif\0\0") + 6
    data[start + 4 : start + 8] = 255  # the offset of the directory
    assert read_header(data).orientation == UPRIGHT


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"no image", b"\x93NUMPY"])
def test_no_image(data: bytes) -> None:
    with pytest.raises(NotAnImageError, match=r"no data|not an image"):
        read_header(np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("size", [2, 3, 20, 100, 150])
def test_jpeg_cut_within_the_header(size: int) -> None:
    with pytest.raises(CorruptImageError, match=r"ends? within the header"):
        read_header(_saved(_gradient(), "JPEG")[:size])


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "GIF"])
def test_others_cut_within_the_header(kind: str) -> None:
    with pytest.raises(CorruptImageError):
        read_header(_saved(_gradient(), kind)[:12])


def test_a_few_bytes_do_not_hold_gigabytes() -> None:
    data = _saved(_gradient(), "JPEG").copy()
    frame = data.tobytes().index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = 255
    with pytest.raises(CorruptImageError, match="cannot hold the 65535x65535 pixels"):
        read_header(data)


def test_errors_are_both_runtime_and_value_errors() -> None:
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind):
            read_header(np.empty(0, np.uint8))


def test_random_bytes_raise_only_image_errors() -> None:
    generator = np.random.default_rng(3)
    good = _saved(_gradient(), "JPEG")
    for _ in range(300):
        data = good[: generator.integers(2, good.size)].copy()
        data[generator.integers(2, data.size + 1, 5) - 1] = generator.integers(0, 256, 5)
        try:
            read_header(data)
        except (CorruptImageError, NotAnImageError):
            continue
