"""Equalized images equal OpenCV's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from penstock.kernels.cpu.histogram import equalize, equalize_tiles


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("values", [(0, 256), (100, 140), (255, 256)])
def test_equals_opencv(values: tuple[int, int], channels: int) -> None:
    image = np.random.default_rng(0).integers(*values, (31, 27, channels), np.uint8)
    result = np.empty_like(image)
    equalize(image, result)
    for channel in range(channels):
        expected = cv2.equalizeHist(np.ascontiguousarray(image[..., channel]))
        np.testing.assert_array_equal(result[..., channel], expected)


@pytest.mark.parametrize("limit", [-1.0, 0.5, 2.0, 40.0])
@pytest.mark.parametrize(
    ("shape", "tiles"), [((48, 64), (4, 8)), ((31, 27), (3, 5)), ((1, 9), (2, 2)), ((5, 3), (7, 8))]
)
def test_tiles_equal_opencvs(shape: tuple[int, int], tiles: tuple[int, int], limit: float) -> None:
    rng = np.random.default_rng(0)
    extents = [extent // count if exact else extent // count + 1 for extent, count, exact in _divided(shape, tiles)]
    most = max(int(limit * extents[0] * extents[1] / 256), 1) if limit > 0 else 0
    for values in ((0, 256), (100, 103), (7, 8)):
        image = rng.integers(*values, (*shape, 2), np.uint8)
        result = np.empty_like(image)
        equalize_tiles(image[..., 1], tiles, (extents[0], extents[1]), most, result[..., 0])
        expected = cv2.createCLAHE(limit, tiles[::-1]).apply(np.ascontiguousarray(image[..., 1]))
        np.testing.assert_array_equal(result[..., 0], expected)


def _divided(shape: tuple[int, int], tiles: tuple[int, int]) -> list[tuple[int, int, bool]]:
    """Return each extent, its number of tiles, and whether both extents are divisible by these; otherwise, OpenCV pads both extents."""
    exact = all(extent % count == 0 for extent, count in zip(shape, tiles))
    return [(extent, count, exact) for extent, count in zip(shape, tiles)]
