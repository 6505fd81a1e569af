"""The pixels that the GPU computes from the coefficients of JPEGs equal libjpeg-turbo's."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import cupy_like as xp
import numpy as np
import pytest
import simplejpeg
from jpeg_kernels import make_pixels
from jpeg_writing import blocks_of, grid_of, write_jpeg
from PIL import Image

from penstock.kernels.cpu.jpeg import segments
from penstock.kernels.cpu.jpeg.batches import QUANTIZERS_PLACE, JpegScans

RNG = np.random.default_rng(3)
GREY, FULL = [(1, 1)], [(1, 1)] * 3
HALVED, WIDE, TALL = ([(2, 2), *FULL[1:]], [(2, 1), *FULL[1:]], [(1, 2), *FULL[1:]])
QUARTERED = [(4, 1), *FULL[1:]]
UNUSUAL = [
    [(4, 2), *FULL[1:]],
    [(1, 4), *FULL[1:]],
    [(3, 1), *FULL[1:]],
    [(2, 2), (2, 1), (1, 2)],
    [(2, 2), (1, 2), (1, 1)],
    [(1, 4), (1, 2), (1, 1)],
    [(1, 1), (2, 2), (1, 1)],
    [(2, 1), (2, 1), (2, 1)],
]
ALL = [GREY, FULL, HALVED, WIDE, TALL, QUARTERED, *UNUSUAL]
SIZES = [(1, 1), (1, 5), (2, 4), (7, 3), (16, 16), (33, 47), (50, 100), (17, 333), (95, 32)]
Size = tuple[int, int]


def coefficients(size: Size, factors: Sequence[Size]) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients like those of photographs, with a few blocks without zeros, and quantizers."""
    down, across = grid_of(size, factors)
    quantizers = RNG.integers(1, 12, (len(factors), 64))
    shape = down * across, len(blocks_of(factors)), 64
    values = np.where(RNG.random(shape) < RNG.random((*shape[:2], 1)) ** 3, RNG.integers(-9, 10, shape), 0)
    values[:, :, 0] = RNG.integers(-70, 70, shape[:2])
    return values.astype(np.int16), quantizers.astype(np.uint16)


class Images:
    """Images with random coefficients.

    Args:
        factors: the sampling factors of each component, the same in all images.

    Attributes:
        made: each image's coefficients and quantizers.
        factors_of: each image's sampling factors.
        files: the images as JPEGs.
    """

    def __init__(self, sizes: Sequence[Size], factors: Sequence[Size]) -> None:
        self.sizes, self.factors = sizes, factors
        self.made = [coefficients(size, factors) for size in sizes]
        self.factors_of = [factors] * len(sizes)
        self.files = [write_jpeg(c, size, factors, q, int(RNG.integers(4))) for size, (c, q) in zip(sizes, self.made)]

    def on_gpu(self, channels: int, windows: Any = None, **how: bool) -> list[np.ndarray]:
        """Return the images, or windows of them (top, left, height, width), computed on the GPU."""
        if windows is None:
            windows = [(0, 0, *size) for size in self.sizes]
        sources = [xp.put(c) for c, _ in self.made]
        targets = [xp.empty((height, width, channels)) for _, _, height, width in windows]
        count = len(self.sizes)
        quantizers = [xp.put(np.concatenate([own, np.ones((3 - len(own), 64), np.uint16)])) for _, own in self.made]
        scans = JpegScans.blank(count)
        columns = scans.columns
        columns.numbers[:, segments.HEIGHT : segments.WIDTH + 1] = np.reshape(self.sizes, (-1, 2))
        for k, own in enumerate(self.factors_of):
            columns.components[k, : len(own), segments.ACROSS : segments.DOWN + 1] = own
        coefficients, pixels, factors = (
            np.array([array.data.ptr for array in arrays], np.uint64) for arrays in (sources, targets, quantizers)
        )
        planes = xp.empty((sum(c.size for c, _ in self.made),))
        places = np.cumsum([planes.data.ptr, *(c.size for c, _ in self.made)], dtype=np.uint64)[:-1]
        # Choose where each image's data begin so that the image's quantizers are at their usual offset from there.
        columns.begins[:-1] = factors.astype(np.int64) - QUANTIZERS_PLACE
        make_pixels(scans, 0, (coefficients, places, pixels), np.array(windows), channels, **how)
        return [target.get() for target in targets]


def by_pillow(file: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(file.tobytes())).convert("RGB"))


def with_repeated_samples(images: Images, k: int) -> np.ndarray:
    """Return an image whose chroma samples are repeated rather than interpolated, by decoding each component as a grey image."""
    (height, width), (values, quantizers) = images.sizes[k], images.made[k]
    down, across = grid_of(images.sizes[k], images.factors)
    most_across, most_down = np.max(images.factors, 0)
    planes, first = [], 0
    for c, (own_across, own_down) in enumerate(images.factors):
        blocks = values[:, first : first + own_across * own_down].reshape(down, across, own_down, own_across, 64)
        first += own_across * own_down
        size = down * own_down * 8, across * own_across * 8
        grey = blocks.transpose(0, 2, 1, 3, 4).reshape(-1, 1, 64)
        plane = by_pillow(write_jpeg(grey, size, GREY, quantizers[c : c + 1]))[..., 0]
        planes.append(plane.repeat(most_down // own_down, 0).repeat(most_across // own_across, 1)[:height, :width])
    y, cb, cr = (plane.astype(np.int64) for plane in planes)
    r, b = cr - 128, cb - 128
    half, fixed = 1 << 15, lambda number: round(number * (1 << 16))
    red, blue = (y + (fixed(1.402) * r + half >> 16), y + (fixed(1.772) * b + half >> 16))
    green = y + (-fixed(0.34414) * b - fixed(0.71414) * r + half >> 16)
    return np.stack([red, green, blue], -1).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("factors", ALL, ids=str)
def test_pixels_are_those_of_pillow(factors: list[Size]) -> None:
    images = Images(SIZES, factors)
    for ours, file in zip(images.on_gpu(3), images.files, strict=True):
        np.testing.assert_array_equal(ours, by_pillow(file))


@pytest.mark.parametrize("factors", ALL[1:], ids=str)
def test_samples_are_repeated_where_they_are_not_smoothed(factors: list[Size]) -> None:
    images = Images(SIZES, factors)
    for k, ours in enumerate(images.on_gpu(3, smooth=False)):
        np.testing.assert_array_equal(ours, with_repeated_samples(images, k))


@pytest.mark.parametrize("factors", [GREY, FULL, HALVED, WIDE, TALL, QUARTERED], ids=str)
@pytest.mark.parametrize("smooth", [True, False])
def test_colours_are_those_of_libjpeg_turbo(factors: list[Size], smooth: bool) -> None:
    images = Images(SIZES, factors)
    for space, channels, reverse in (("RGB", 3, False), ("BGR", 3, True), ("GRAY", 1, False)):
        found = images.on_gpu(channels, smooth=smooth, reverse=reverse)
        for ours, file in zip(found, images.files, strict=True):
            theirs = simplejpeg.decode_jpeg(file.tobytes(), space, fastdct=False, fastupsample=not smooth)
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("factors", [GREY, FULL, HALVED, WIDE, TALL, QUARTERED, *UNUSUAL], ids=str)
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("channels", [3, 1])
def test_windows_are_those_of_the_whole_image(factors: list[Size], smooth: bool, channels: int) -> None:
    images = Images([(70, 130)] * 12, factors)
    windows: list[Any] = [
        (0, 0, 1, 1),
        (69, 129, 1, 1),
        (0, 17, 70, 5),
        (31, 0, 3, 130),
        (16, 16, 16, 16),
        (32, 64, 38, 66),
    ]
    for _ in range(6):
        top, left = RNG.integers(70), RNG.integers(130)
        windows.append((top, left, RNG.integers(1, 71 - top), RNG.integers(1, 131 - left)))
    whole = images.on_gpu(channels, smooth=smooth)
    found = images.on_gpu(channels, windows, smooth=smooth)
    for ours, image, (top, left, height, width) in zip(found, whole, windows, strict=True):
        np.testing.assert_array_equal(ours, image[top : top + height, left : left + width])


def test_images_of_all_kinds_together() -> None:
    kinds = [Images(SIZES[k : k + 2], factors) for k, factors in enumerate([HALVED, GREY, TALL, FULL, WIDE])]
    together = Images([], HALVED)
    together.sizes = [size for images in kinds for size in images.sizes]
    together.made = [made for images in kinds for made in images.made]
    together.factors_of = [images.factors for images in kinds for _ in images.sizes]
    expected = [by_pillow(file) for images in kinds for file in images.files]
    for ours, theirs in zip(together.on_gpu(3), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
