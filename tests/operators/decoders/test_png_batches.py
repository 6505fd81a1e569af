"""Batches of plain PNGs, which are decoded in a few calls, have the same pixels and errors as single files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs
from PIL import Image

from penstock import fn, types
from penstock.kernels.codecs import image_codec
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.windows import Region

RNG = np.random.default_rng(12)
CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}


def png(mode: str, height: int, width: int) -> np.ndarray:
    pixels = RNG.integers(0, 256, (height, width, CHANNELS[mode]), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if mode == "L" else pixels, mode).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


# The last file is so large that a separate task decodes it.
FILES = [png(mode, *size) for mode in CHANNELS for size in ((32, 32), (1, 1), (7, 50))] + [png("RGB", 150, 200)]


@pytest.fixture
def decoded_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each call of the kernel appends the number of files that it decoded."""
    counts: list[int] = []
    decode_several: Callable[..., None] = image_codec.decode_several_pngs

    def counted(library: Any, pngs: np.ndarray, decoded: np.ndarray) -> None:
        decode_several(library, pngs, decoded)
        counts.append(int(decoded.sum()))

    monkeypatch.setattr(image_codec, "decode_several_pngs", counted)
    return counts


def single(file: np.ndarray, output_type: Any, region: Region | None = None) -> np.ndarray:
    header = read_header(file)
    height, width, channels = header.shape(output_type)
    pixels = np.empty((*((height, width) if region is None else region.extents), channels), np.uint8)
    decode(file, header, pixels, output_type, region=region)
    return pixels


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY])
def test_batches_have_the_pixels_of_single_files(output_type: Any, decoded_together: list[int]) -> None:
    (images,) = outputs(lambda: fn.decoders.image(fn.external_source(name="data"), output_type=output_type), data=FILES)
    assert sum(decoded_together) == len(FILES)
    assert len(decoded_together) < len(FILES)
    for file, image in zip(FILES, images):
        np.testing.assert_array_equal(image, single(file, output_type))


def test_regions(decoded_together: list[int]) -> None:
    files = [png(mode, 20, 30) for mode in CHANNELS]

    def define() -> Any:
        return fn.decoders.image_slice(fn.external_source(name="data"), start=[3, 5], shape=[8, 11], axis_names="HW")

    (images,) = outputs(define, data=files)
    assert sum(decoded_together) == len(files)
    for file, image in zip(files, images):
        np.testing.assert_array_equal(image, single(file, types.RGB, Region((3, 5), (8, 11))))


def test_a_damaged_file_fails_alone() -> None:
    damaged = FILES[0].copy()
    damaged[60] ^= 255
    (images,), failures = isolated(
        lambda: fn.decoders.image(fn.external_source(name="data")), data=[FILES[3], damaged, FILES[6]]
    )
    assert list(failures) == [1]
    for image, file in ((images[0], FILES[3]), (images[2], FILES[6])):
        np.testing.assert_array_equal(image, single(file, types.RGB))


def test_other_files_are_decoded_in_the_same_batch(decoded_together: list[int]) -> None:
    palette = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (9, 8), np.uint8)).convert("P").save(palette, "PNG")
    files = [FILES[0], np.frombuffer(palette.getvalue(), np.uint8)]
    (images,) = outputs(lambda: fn.decoders.image(fn.external_source(name="data")), data=files)
    assert not decoded_together
    for file, image in zip(files, images):
        np.testing.assert_array_equal(image, single(file, types.RGB))
