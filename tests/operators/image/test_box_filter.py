"""`filter` with equal weights sums bytes and then multiplies the sums: the same bytes as OpenCV's sums of products."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.operators.image._box_cpu import sums_first

RNG = np.random.default_rng(0)
BORDERS = {
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect_1001": cv2.BORDER_REFLECT,
    "clamp": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
}


def filtered(image: np.ndarray, layout: str, window: np.ndarray, fill: int | None = None, **given: Any) -> np.ndarray:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        data = fn.external_source(lambda: [image], layout=layout)
        fills = [] if fill is None else [fn.external_source(lambda: [np.array(fill, image.dtype)])]
        return fn.filter(data, fn.external_source(lambda: [window]), *fills, **given)

    return np.array(define().run()[0][0])


def box(height: int, width: int) -> np.ndarray:
    return np.full((height, width), 1 / (height * width), np.float32)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 5), (9, 7), (1, 11), (3, 39)])
def test_equals_opencv(border: str, size: tuple[int, int]) -> None:
    window = box(*size)
    assert sums_first(float(window[0, 0]), window.size)
    for shape in ((40, 50, 3), (7, 6, 1), (1, 1, 3), (2, 70, 4)):
        image = RNG.integers(0, 256, shape).astype(np.uint8)
        expected = cv2.filter2D(image, -1, window, borderType=BORDERS[border]).reshape(shape)
        np.testing.assert_array_equal(filtered(image, "HWC", window, border=border), expected)


def test_anchor_planes_and_layouts() -> None:
    window, image = box(3, 5), RNG.integers(0, 256, (3, 20, 30)).astype(np.uint8)
    expected = np.stack([cv2.filter2D(plane, -1, window, anchor=(0, 2)) for plane in image])
    np.testing.assert_array_equal(filtered(image, "CHW", window, anchor=[2, 0]), expected)
    np.testing.assert_array_equal(filtered(image[0], "HW", window, anchor=[2, 0]), expected[0])


@pytest.mark.parametrize("value", [0, 255])
def test_extremes_saturate(value: int) -> None:
    image = np.full((20, 20, 3), value, np.uint8)
    np.testing.assert_array_equal(filtered(image, "HWC", box(5, 5)), image)
    doubled = 2 * box(3, 3)
    np.testing.assert_array_equal(filtered(image, "HWC", doubled), image)


def test_valid_wrap_and_fill() -> None:
    image, window = RNG.integers(0, 256, (20, 30, 3)).astype(np.uint8), box(3, 5)
    inner = cv2.filter2D(image, -1, window)[1:-1, 2:-2]
    np.testing.assert_array_equal(filtered(image, "HWC", window, mode="valid"), inner)
    wrapped = cv2.filter2D(np.pad(image, [(1, 1), (2, 2), (0, 0)], "wrap"), -1, window)[1:-1, 2:-2]
    np.testing.assert_array_equal(filtered(image, "HWC", window, border="wrap"), wrapped)
    filled = np.pad(image, [(1, 1), (2, 2), (0, 0)], constant_values=9)
    expected = cv2.filter2D(filled, -1, window)[1:-1, 2:-2]
    np.testing.assert_array_equal(filtered(image, "HWC", window, fill=9, border="constant"), expected)


@pytest.mark.parametrize(
    ("weight", "area"),
    [
        (1 / 16, 16),  # weighted sums that are halfway between two integers are rounded to the even one
        (1 / 121, 121),  # for this size, OpenCV uses Fourier transforms
        (0.0, 9),
        (-1 / 9, 9),
        (float("nan"), 9),
        (float("inf"), 9),
    ],
)
def test_other_windows_are_left_to_opencv(weight: float, area: int) -> None:
    assert not sums_first(float(np.float32(weight)), area)


def test_other_types_are_left_to_opencv() -> None:
    image, window = RNG.integers(0, 256, (20, 30, 3)).astype(np.uint16), box(3, 3)
    np.testing.assert_array_equal(filtered(image, "HWC", window), cv2.filter2D(image, -1, window))
