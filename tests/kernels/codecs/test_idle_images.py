"""Memory of decoded images that is used again. What decodes into it is tested on a GPU (tests/gpu/test_decoding_on_gpu.py)."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock.kernels.codecs.image_codec_gpu import IdleImages
from penstock.kernels.codecs.libraries import nvimgcodec


@pytest.fixture(scope="module")
def images() -> list[Any]:
    """Images of nvImageCodec's, in host memory: of 300, 1200 and 4800 bytes."""
    codec: Any = nvimgcodec()
    decoder = codec.Decoder(
        device_id=codec.NVIMGCODEC_DEVICE_CPU_ONLY, backends=[codec.Backend(codec.BackendKind.CPU_ONLY)]
    )
    decoded = []
    for side in (10, 20, 40):
        file = io.BytesIO()
        Image.new("RGB", (side, side)).save(file, "PNG")
        decoded.append(decoder.decode(codec.CodeStream(np.frombuffer(file.getvalue(), np.uint8))))
    return decoded


def given(images: list[Any]) -> IdleImages:
    idle = IdleImages()
    for image in images:
        idle.give(image)
    return idle


def test_the_largest_memory_is_for_the_largest_image(images: list[Any]) -> None:
    assert given(images).take([1100, 4000, 200]) == [images[1], images[2], images[0]]


def test_too_few_images_are_none(images: list[Any]) -> None:
    assert given(images).take([300] * 4) is None


def test_memory_that_is_much_too_large_is_let_go(images: list[Any]) -> None:
    idle = given(images)
    assert idle.take([300]) is None
    assert idle.take([4800]) is None


def test_what_is_taken_is_no_longer_idle(images: list[Any]) -> None:
    idle = given(images)
    assert idle.take([300, 1200, 4800]) is not None
    assert idle.take([300]) is None
