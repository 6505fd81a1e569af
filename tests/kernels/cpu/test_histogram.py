"""Equalized images equal OpenCV's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from penstock.kernels.cpu.histogram import equalize


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("values", [(0, 256), (100, 140), (255, 256)])
def test_equals_opencv(values: tuple[int, int], channels: int) -> None:
    image = np.random.default_rng(0).integers(*values, (31, 27, channels), np.uint8)
    result = np.empty_like(image)
    equalize(image, result)
    for channel in range(channels):
        expected = cv2.equalizeHist(np.ascontiguousarray(image[..., channel]))
        np.testing.assert_array_equal(result[..., channel], expected)
