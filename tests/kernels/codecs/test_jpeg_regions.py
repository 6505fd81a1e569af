"""The conditions for decoding a JPEG by region."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.jpeg_regions import decodes_alone
from penstock.kernels.windows import Region

REGION = Region((3, 4), (10, 12))


def jpeg(**options: Any) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(options.pop("mode", "RGB")).save(buffer, options.pop("format", "JPEG"), **options)
    return buffer.getvalue()


def alone(data: bytes, region: Region = REGION) -> bool:
    encoded = np.frombuffer(data, np.uint8)
    return decodes_alone(encoded, read_header(encoded), region)


@pytest.mark.parametrize("options", [{}, {"mode": "L"}, {"subsampling": 0}, {"restart_marker_blocks": 1}])
def test_one_sequential_scan_is_decoded_alone(options: dict[str, Any]) -> None:
    assert alone(jpeg(**options))
    assert alone(jpeg(**options) + b"\0\0\0")


@pytest.mark.parametrize("options", [{"progressive": True}, {"mode": "CMYK"}, {"format": "PNG"}])
def test_other_images_are_not(options: dict[str, Any]) -> None:
    assert not alone(jpeg(**options))


def test_a_scan_without_its_end_is_not() -> None:
    data = jpeg()
    assert not alone(data[:-2])
    assert not alone(data[: len(data) // 2] + b"\xff\xc4" + data[len(data) // 2 + 2 :])


def test_a_single_column_is_not() -> None:
    assert not alone(jpeg(), Region((3, 0), (10, 1)))
    assert alone(jpeg(), Region((3, 0), (1, 2)))
