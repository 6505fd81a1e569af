"""JPEGs decoded at 1/2, 1/4 and 1/8 have the same pixels as with libjpeg-turbo, which Pillow's `draft` uses."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from penstock.kernels.codecs.image_codec import decode, decode_reduced, reduced_extents
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.jpeg_baseline import decode_region
from penstock.kernels.windows import Region
from penstock.types import DALIImageType

RNG = np.random.default_rng(0)
SAMPLINGS = {name: getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}") for name in ("444", "422", "420", "440", "411")}
SCALES = (2, 4, 8)


def picture(height: int, width: int) -> np.ndarray:
    coarse = RNG.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(smooth + RNG.normal(0, 10, smooth.shape), 0, 255).astype(np.uint8)


def jpeg(height: int, width: int, sampling: str = "420", **options: int) -> np.ndarray:
    flags = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLINGS[sampling]]
    for name, value in options.items():
        flags += [getattr(cv2, f"IMWRITE_JPEG_{name.upper()}"), value]
    return np.frombuffer(cv2.imencode(".jpg", picture(height, width), flags)[1].tobytes(), np.uint8)


def saved(pixels: np.ndarray, **options: Any) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def by_pillow(encoded: np.ndarray, scale: int, mode: str = "RGB") -> np.ndarray:
    image = Image.open(io.BytesIO(encoded.tobytes()))
    image.draft(image.mode, (image.width // scale, image.height // scale))
    return np.asarray(image.convert(mode))


def by_kernels(encoded: np.ndarray, scale: int, region: Region | None = None) -> np.ndarray:
    header = read_header(encoded)
    region = region or Region.whole(reduced_extents((header.height, header.width), scale))
    output = np.full((*region.extents, 3), 77, np.uint8)
    assert decode_region(encoded, header, region, output, False, scale)
    return output


def reduced(encoded: np.ndarray, scale: int, kind: DALIImageType = DALIImageType.RGB, dtype: Any = np.uint8) -> Any:
    header = read_header(encoded)
    height, width, channels = header.shape(kind, True)
    output = np.zeros((*reduced_extents((height, width), scale), channels), dtype)
    decode_reduced(encoded, header, scale, output, kind)
    return output


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("progressive", [0, 1])
def test_samplings(sampling: str, scale: int, progressive: int) -> None:
    for height, width in ((256, 256), (301, 333), (17, 267), (130, 401)):
        quality = int(RNG.integers(20, 101))
        encoded = jpeg(height, width, sampling, progressive=progressive, quality=quality)
        np.testing.assert_array_equal(by_kernels(encoded, scale), by_pillow(encoded, scale))


@pytest.mark.parametrize("scale", SCALES)
def test_grey(scale: int) -> None:
    encoded = saved(picture(290, 310)[..., 0], format="JPEG")
    np.testing.assert_array_equal(by_kernels(encoded, scale), by_pillow(encoded, scale))
    np.testing.assert_array_equal(reduced(encoded, scale, DALIImageType.GRAY)[..., 0], by_pillow(encoded, scale, "L"))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_regions(sampling: str, scale: int) -> None:
    encoded = jpeg(403, 517, sampling, rst_interval=3, progressive=int(scale == 4))
    whole = by_pillow(encoded, scale)
    height, width, _ = whole.shape
    for _ in range(8):
        rows, columns = int(RNG.integers(1, height + 1)), int(RNG.integers(32, width + 1))
        top, left = int(RNG.integers(height - rows + 1)), int(RNG.integers(width - columns + 1))
        region = by_kernels(encoded, scale, Region((top, left), (rows, columns)))
        np.testing.assert_array_equal(region, whole[top : top + rows, left : left + columns])


def test_colours_in_reverse_and_luma_alone() -> None:
    encoded = jpeg(300, 400)
    np.testing.assert_array_equal(reduced(encoded, 4, DALIImageType.BGR)[..., ::-1], by_pillow(encoded, 4))
    grey = Image.open(io.BytesIO(encoded.tobytes()))
    grey.draft("L", (100, 75))
    np.testing.assert_array_equal(reduced(encoded, 4, DALIImageType.GRAY)[..., 0], np.asarray(grey))


def means(pixels: np.ndarray, scale: int) -> np.ndarray:
    """Return the means of ``scale`` x ``scale`` pixels, computed one by one."""
    rows, columns = reduced_extents(pixels.shape[:2], scale)
    result = np.empty((rows, columns, pixels.shape[2]))
    for y, x in np.ndindex(rows, columns):
        ys = np.minimum(np.arange(y * scale, (y + 1) * scale), pixels.shape[0] - 1)
        xs = np.minimum(np.arange(x * scale, (x + 1) * scale), pixels.shape[1] - 1)
        result[y, x] = pixels[np.ix_(ys, xs)].mean((0, 1))
    return result


@pytest.mark.parametrize(
    "encoded",
    [
        saved(picture(37, 61), format="PNG"),
        jpeg(40, 50),  # at 1/2, narrower than the kernels accept
        saved(np.asarray(Image.fromarray(picture(45, 90)).convert("CMYK")), format="TIFF"),
    ],
)
def test_other_images_are_averaged(encoded: np.ndarray) -> None:
    header = read_header(encoded)
    whole = np.empty(header.shape(DALIImageType.RGB, True), np.uint8)
    decode(encoded, header, whole)
    for scale in SCALES:
        expected = np.floor(means(whole, scale) + 0.5)
        assert np.abs(reduced(encoded, scale).astype(float) - expected).max() <= 0
        deep = reduced(encoded, scale, dtype=np.float32)
        np.testing.assert_allclose(deep, means(whole, scale) / 255, atol=1e-5)


@pytest.mark.parametrize("orientation", [2, 3, 5, 6, 8])
@pytest.mark.parametrize("size", [(256, 272), (250, 277)])
def test_turned_images(orientation: int, size: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    pixels = picture(*size)
    turned, plain = saved(pixels, format="JPEG", exif=exif), saved(pixels, format="JPEG")
    result = reduced(turned, 2)
    header = read_header(turned)
    if size[0] % 2 == size[1] % 2 == 0:
        expected = header.orientation.upright(reduced(plain, 2))
        np.testing.assert_array_equal(result, expected)
    else:
        whole = np.empty(header.shape(DALIImageType.RGB, True), np.uint8)
        decode(turned, header, whole)
        np.testing.assert_array_equal(result, np.floor(means(whole, 2) + 0.5))


def test_damaged_files_fail_as_at_full_size() -> None:
    encoded = jpeg(300, 400)[:900]
    with pytest.raises(CorruptImageError, match="300x400"):
        reduced(encoded, 2)


def test_files_of_random_bytes_in_the_scan_never_end_the_process() -> None:
    for number in range(60):
        sampling, progressive = list(SAMPLINGS)[number % 5], number % 2
        encoded = jpeg(120, 300, sampling, progressive=progressive).copy()
        places = RNG.integers(400, len(encoded) - 2, 3)
        encoded[places] = RNG.integers(0, 256, 3)
        scale = SCALES[number % 3]
        try:
            assert reduced(encoded, scale).shape == (*reduced_extents((120, 300), scale), 3)
        except CorruptImageError:
            continue
