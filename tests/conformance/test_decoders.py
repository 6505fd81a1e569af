"""The decoders, compared with DALI's."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from side_by_side import difference

_RECORDING = np.load(Path(__file__).parents[1] / "golden" / "decoders" / "images.npz")
_DATA = Path(__file__).parents[3] / "shared" / "data" / "images"
_READABLE = sorted({key.split("/")[0] for key in _RECORDING.files if key.count("/") == 2} - {"rgba.tiff"})


def _constant(module: Any, *encoded: np.ndarray) -> Any:
    return module.fn.external_source(source=lambda: list(encoded), num_outputs=None)


def _compare(encoded: list[np.ndarray], define: Callable[[Any, Any], Any], **options: Any) -> str:
    return difference(lambda module: define(module, _constant(module, *encoded)), len(encoded), **options)


def _big_jpeg(seed: int, exif: int = 1) -> np.ndarray:
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), np.uint8).repeat(10, 0).repeat(10, 1)
    tags = Image.Exif()
    tags[0x0112] = exif
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", exif=tags)
    return np.frombuffer(buffer.getvalue(), np.uint8)


@pytest.mark.parametrize("output_type", ["RGB", "BGR", "GRAY", "YCbCr"])
def test_every_format(output_type: str) -> None:
    encoded = [_RECORDING[f"file/{name}"] for name in _READABLE]
    assert not _compare(encoded, lambda m, x: m.fn.decoders.image(x, output_type=getattr(m.types, output_type)))


@pytest.mark.parametrize("dtype", ["UINT16", "INT16", "INT8", "FLOAT", "UINT32"])
def test_every_type(dtype: str) -> None:
    encoded = [_RECORDING[f"file/{name}"] for name in ("rgb_420.jpg", "rgb_16bit.png", "gray_16bit.png", "palette.png")]
    assert not _compare(encoded, lambda m, x: m.fn.decoders.image(x, dtype=getattr(m.types, dtype)))


@pytest.mark.parametrize("name", ["empty", "text", "truncated.jpg", "header_only.jpg", "no_end.jpg", "truncated.png"])
def test_errors(name: str) -> None:
    assert not _compare([_RECORDING[f"file/{name}"]], lambda m, x: m.fn.decoders.image(x))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    "define",
    [
        lambda m, x: m.fn.decoders.image(x),
        lambda m, x: m.fn.decoders.image(x, adjust_orientation=False),
        lambda m, x: m.fn.decoders.image_crop(x, crop=(51, 70), crop_pos_x=0.2, crop_pos_y=0.7),
        lambda m, x: m.fn.decoders.image_slice(x, start=[11, 23], end=[60, 50]),
        lambda m, x: m.fn.peek_image_shape(x),
    ],
)
def test_orientation(orientation: int, define: Callable[[Any, Any], Any]) -> None:
    assert not _compare([_big_jpeg(1, orientation)], define, exact=True)


def test_random_windows() -> None:
    encoded = [_big_jpeg(seed) for seed in range(4)]
    assert not _compare(encoded, lambda m, x: m.fn.decoders.image_random_crop(x, seed=5), iterations=3, exact=True)
    assert not _compare(
        encoded,
        lambda m, x: m.fn.decoders.image_random_crop(x, random_area=[0.3, 0.4], random_aspect_ratio=[0.5, 2.0]),
        iterations=2,
        exact=True,
    )


@pytest.mark.parametrize(
    "define",
    [
        lambda m, x: m.fn.decoders.image_crop(x, crop=(500, 20)),
        lambda m, x: m.fn.decoders.image_crop(x, crop_h=20),
        lambda m, x: m.fn.decoders.image_crop(x, crop=(20, 20), crop_pos_x=2.0),
        lambda m, x: m.fn.decoders.image_slice(x),
        lambda m, x: m.fn.decoders.image_slice(x, np.float32([0.7, 0.2]), np.float32([0.5, 0.5])),
        lambda m, x: m.fn.decoders.image_slice(x, start=[2], rel_start=[0.1]),
        lambda m, x: m.fn.decoders.image(x, dtype=m.types.INT64),
        lambda m, x: m.fn.peek_image_shape(x, dtype=m.types.UINT8),
    ],
)
def test_impossible_requests(define: Callable[[Any, Any], Any]) -> None:
    assert not _compare([_big_jpeg(1)], define)


@pytest.mark.parametrize("folder", ["jpeg", "png", "bmp", "tiff", "jpeg2k", "webp", "pnm"])
def test_photographs_where_they_are_at_hand(folder: str) -> None:
    encoded = [np.fromfile(path, np.uint8) for path in sorted((_DATA / folder).glob("*"))[:12]]
    exact = folder in ("jpeg", "png", "bmp")
    if encoded:
        assert not _compare(encoded, lambda m, x: (m.fn.decoders.image(x), m.fn.peek_image_shape(x)), exact=exact)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "bool"])
def test_numpy(dtype: str) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(-6, 6).reshape(3, 4).astype(dtype))
    encoded = [np.frombuffer(buffer.getvalue(), np.uint8)] * 2
    assert not _compare(encoded, lambda m, x: (m.fn.decoders.numpy(x), m.fn.decoders.numpy(x, dtype=m.types.INT32)))
