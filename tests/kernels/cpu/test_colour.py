"""Products of pixels and a matrix, with vector instructions if the types allow it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.cpu.casting import cast
from penstock.kernels.cpu.colour import scale_add, transform

RNG = np.random.default_rng(0)


def expected(source: np.ndarray, matrix: np.ndarray, offset: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the products in single precision, with terms added from left to right; for integers, round halves away from zero."""
    red, green, blue = source.astype(np.float32).T
    sums = np.stack([row[0] * red + row[1] * green + row[2] * blue + add for row, add in zip(matrix, offset)], axis=1)
    if dtype == np.float32:
        return sums
    limits = np.iinfo(dtype)
    inside = np.clip(np.nan_to_num(sums, nan=0, posinf=limits.max, neginf=limits.min), limits.min, limits.max)
    whole = np.trunc(inside)
    rounded: np.ndarray = (whole + (inside - whole >= 0.5) - (inside - whole <= -0.5)).astype(dtype)
    return rounded


@pytest.mark.parametrize("count", [1, 15, 16, 17, 333])
@pytest.mark.parametrize("target", [np.uint8, np.float32])
@pytest.mark.parametrize("source", [np.uint8, np.int16, np.float32])
def test_matrix(source: Any, target: Any, count: int) -> None:
    pixels = (RNG.random((count, 3)) * 256).astype(source)
    matrix = RNG.normal(0, 0.7, (3, 3)).astype(np.float32)
    offset = RNG.normal(0, 20, 3).astype(np.float32)
    result = np.empty((count, 3), target)
    transform(pixels, matrix, offset, result)
    np.testing.assert_array_equal(result, expected(pixels, matrix, offset, target))


@pytest.mark.parametrize("count", [1, 31, 32, 33, 999])
@pytest.mark.parametrize("target", [np.uint8, np.float32])
@pytest.mark.parametrize("source", [np.uint8, np.int16, np.float32])
def test_factor(source: Any, target: Any, count: int) -> None:
    values = (RNG.random((count, 3)) * 256).astype(source)
    result = np.empty((count, 3), target)
    scale_add(values, 1.3, -20.0, result)
    matrix, offset = np.eye(3, dtype=np.float32) * np.float32(1.3), np.full(3, -20, np.float32)
    np.testing.assert_array_equal(result, expected(values, matrix, offset, target))


def test_ties_and_limits() -> None:
    """Halves are rounded away from zero; NaN becomes 0; values beyond the type's range saturate."""
    values = np.array([-1, -0.5, 0.49, 0.5, 1.5, 254.5, 255.5, 1e9, -1e9, np.inf, -np.inf, np.nan], np.float32)
    pixels = np.repeat(values, 4)[:, None].repeat(3, axis=1)
    result = np.empty(pixels.shape, np.uint8)
    transform(pixels, np.eye(3, dtype=np.float32), np.zeros(3, np.float32), result)
    finite = np.isfinite(values)
    rounded = np.array([0, 0, 0, 1, 2, 255, 255, 255, 0, 0, 0, 0], np.uint8)
    np.testing.assert_array_equal(result[:, 0].reshape(-1, 4)[finite], rounded[finite, None].repeat(4, axis=1))
    # Infinity times 0 is NaN.
    assert not result[:, 0].reshape(-1, 4)[~finite].any()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_neighbours_of_halves_are_rounded_to_their_sides(kind: Any, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    wholes = np.arange(max(limits.min, -3000), min(limits.max, 3000), dtype=kind)
    for halves in (wholes + kind(0.5), wholes - kind(0.5)):
        for values in (halves, np.nextafter(halves, kind(np.inf)), np.nextafter(halves, kind(-np.inf))):
            whole, rest = np.trunc(values), values - np.trunc(values)
            exact = np.clip(whole + (rest >= 0.5) - (rest <= -0.5), limits.min, limits.max)
            result = np.empty(len(values), dtype)
            cast(values, result)
            np.testing.assert_array_equal(result, exact)
            if kind == np.float32 and dtype == np.uint8:
                scale_add(values, 1.0, 0.0, result)
                np.testing.assert_array_equal(result, exact)
