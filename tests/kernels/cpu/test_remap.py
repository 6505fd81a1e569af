"""Interpolation at fractional positions; several channels are computed at once if all neighbours lie in the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.cpu.remap import remap

RNG = np.random.default_rng(0)
FILL = np.float32(7)


def expected(image: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Return pixels interpolated bilinearly, in single precision; neighbours outside the image have the fill value."""
    height, width, _ = image.shape
    padded = np.pad(image.astype(np.float32), [(2, 2), (2, 2), (0, 0)], constant_values=FILL)
    left, top = np.floor(xs), np.floor(ys)
    fx, fy = (xs - left)[..., None], (ys - top)[..., None]
    column, row = left.astype(int).clip(-2, width) + 2, top.astype(int).clip(-2, height) + 2
    upper = padded[row, column] + (padded[row, column + 1] - padded[row, column]) * fx
    lower = padded[row + 1, column] + (padded[row + 1, column + 1] - padded[row + 1, column]) * fx
    values = upper + (lower - upper) * fy
    outside = (xs <= -1) | (xs >= width) | (ys <= -1) | (ys >= height)
    values[outside] = FILL
    if image.dtype == np.float32:
        return values
    whole = np.trunc(values)
    rounded: np.ndarray = (whole + (values - whole >= 0.5) - (values - whole <= -0.5)).astype(image.dtype)
    return rounded


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_linear(channels: int, dtype: Any) -> None:
    for height, width in ((30, 40), (2, 3), (1, 1), (9, 2)):
        image = (RNG.random((height, width, channels)) * 250).astype(dtype)
        xs = (RNG.random((33, 37)) * (width + 4) - 2).astype(np.float32)
        ys = (RNG.random((33, 37)) * (height + 4) - 2).astype(np.float32)
        result = np.empty((33, 37, channels), dtype)
        remap(image, xs, ys, 0.0, True, result, float(FILL))
        np.testing.assert_array_equal(result, expected(image, xs, ys))


def test_no_numbers_and_far_positions_are_outside() -> None:
    image = RNG.integers(0, 256, (9, 9, 3)).astype(np.uint8)
    xs = np.array([[np.nan, np.inf, -np.inf, 1e30, -1e30, 4, 4, 4]], np.float32)
    ys = np.array([[4, 4, 4, 4, 4, np.nan, np.inf, 4]], np.float32)
    result = np.empty((1, 8, 3), np.uint8)
    remap(image, xs, ys, 0.0, True, result, float(FILL))
    assert (result[0, :7] == FILL).all()
    np.testing.assert_array_equal(result[0, 7], image[4, 4])
