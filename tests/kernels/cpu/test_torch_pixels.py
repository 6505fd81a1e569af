"""Resampling uint8 gives the same values as resampling equal floats."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu.torch_floats import resample_image
from penstock.kernels.cpu.torch_pixels import LEAST, resample_rounded, resample_to_planes

FACTORS = {
    "as they are": [(1, 0, 1)] * 3,
    "scaled": [(1 / 255, 0, 1), (0.3, 0, 1), (2, 0, 1)],
    "normalized": [(1, 124, 58), (1, 116.3, 57.1), (1 / 255, 0.4, 0.2)],
}
SIZES = [((LEAST, LEAST), (LEAST, LEAST + 1)), ((1, 40), (64, 17)), ((853, 131), (60, 96)), ((90, 50), (700, 1024))]


def _resampled(values: np.ndarray, size: tuple[int, int], cubic: bool) -> np.ndarray:
    """Resample with the kernel for floats, plane by plane."""
    planes = np.empty((3, *size, 1), np.float32)
    for channel, plane in enumerate(planes):
        resample_image(np.ascontiguousarray(values[:, :, channel, None]), plane, cubic, False, 3)
    return planes[..., 0]


@pytest.mark.parametrize("cubic", [False, True])
@pytest.mark.parametrize(("before", "after"), SIZES)
@pytest.mark.parametrize("name", FACTORS)
def test_planes_are_those_of_floats(name: str, before: tuple[int, int], after: tuple[int, int], cubic: bool) -> None:
    image = np.random.default_rng(3).integers(0, 256, (*before, 3), np.uint8)
    factors = np.array([(*row, 0) for row in FACTORS[name]], np.float32)
    planes = np.empty((3, *after), np.float32)
    resample_to_planes(image, factors, cubic, planes)
    a, b, c, _ = factors.T
    np.testing.assert_array_equal(planes, _resampled((image * a - b) / c, after, cubic))


@pytest.mark.parametrize("cubic", [False, True])
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_pixels_are_floats_rounded_to_even(before: tuple[int, int], after: tuple[int, int], cubic: bool) -> None:
    # Extremes are next to each other, so that results of cubic filters exceed them; and means of two values may end in .5.
    image = np.random.default_rng(3).choice(np.array([0, 1, 254, 255], np.uint8), (*before, 3))
    pixels = np.empty((*after, 3), np.uint8)
    resample_rounded(image, cubic, pixels)
    expected = np.clip(np.rint(_resampled(image.astype(np.float32), after, cubic)), 0, 255)
    np.testing.assert_array_equal(pixels, expected.transpose(1, 2, 0))
