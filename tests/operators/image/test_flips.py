"""Mirrored images of many widths and types of elements, which are reversed block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def

RNG = np.random.default_rng(0)
WIDTHS = (1, 2, 5, 15, 16, 17, 21, 22, 31, 43, 64, 65, 127, 200)


def flipped(images: list[np.ndarray], layout: str, **given: Any) -> list[np.ndarray]:
    @pipeline_def(batch_size=len(images), num_threads=1, device_id=None)
    def define() -> Any:
        return fn.flip(fn.external_source(lambda: images, layout=layout), **given)

    return [np.array(image) for image in define().run()[0]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_width(channels: int, dtype: Any) -> None:
    images = [RNG.integers(0, 256, (3, width, channels)).astype(dtype) for width in WIDTHS]
    for image, result in zip(images, flipped(images, "HWC"), strict=True):
        np.testing.assert_array_equal(result, image[:, ::-1])
    for image, result in zip(images, flipped(images, "HWC", vertical=1), strict=True):
        np.testing.assert_array_equal(result, image[::-1, ::-1])
    for image, result in zip(images, flipped(images, "HWC", horizontal=0, vertical=1), strict=True):
        np.testing.assert_array_equal(result, image[::-1])


def test_planes() -> None:
    images = [RNG.integers(0, 256, (3, 4, width)).astype(np.uint8) for width in WIDTHS]
    for image, result in zip(images, flipped(images, "CHW"), strict=True):
        np.testing.assert_array_equal(result, image[..., ::-1])
