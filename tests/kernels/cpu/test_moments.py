"""Sums, squared deviations and normalized values equal NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.kernels.cpu import moments

SHAPE = (20, 21, 19, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("axes", [(0,), (0, 1), (1, 2), (1, 2, 3), (0, 1, 2, 3), (2, 1)])
def test_equals_numpy(axes: tuple[int, ...], dtype: type) -> None:
    data = np.random.default_rng(0).integers(0, 99, SHAPE).astype(dtype)
    volumes = moments.around(data, axes)
    assert volumes is not None
    kept = tuple(extent for axis, extent in enumerate(SHAPE) if axis not in axes)
    assert math.prod(volumes) == math.prod(kept)
    np.testing.assert_array_equal(moments.sums(data, volumes).reshape(kept), data.sum(axes, np.float64))
    mean = data.mean(axes, keepdims=True).astype(np.float32)
    differences = data.astype(np.float32) - mean
    np.testing.assert_allclose(
        moments.squared_deviations(data, volumes, mean).reshape(kept), np.sum(differences**2, axes, np.float64), 1e-12
    )
    target = np.empty(SHAPE, np.float32)
    factor = np.float32(0.5) + mean
    moments.normalize(data, volumes, mean, factor, 0.25, target)
    np.testing.assert_array_equal(target, differences * factor + np.float32(0.25))


def test_arrays_that_are_left_to_others() -> None:
    data = np.zeros(SHAPE, np.uint8)
    assert moments.around(data, (0, 2)) is None
    assert moments.around(np.zeros((3, 100), np.uint8), (0,)) is None
    assert moments.around(data, ()) is None
    assert moments.around(data[:0], (0,)) is None
    assert moments.around(data.astype(np.float16), (0, 1, 2)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("length", [2, 15, 20, 256, 271, 1000])
def test_standardized_rows_equal_numpy(length: int, dtype: type) -> None:
    data = np.random.default_rng(1).normal(7, 90, (3, length)).astype(dtype)
    data[1] = 5
    volumes = moments.around(data, (1,))
    assert volumes is not None
    target = np.empty(data.shape, np.float32)
    moments.standardize(data, volumes, moments.Standard(1, 0.0, np.float32(2), np.float32(0.5)), target)
    wide = data.astype(np.float64)
    deviation = wide.std(1, ddof=1, keepdims=True)
    expected = (wide - wide.mean(1, keepdims=True)) / np.where(deviation, deviation, 1) * 2 + 0.5
    np.testing.assert_allclose(target, expected, rtol=1e-5, atol=1e-5)
    assert (target[1] == 0.5).all()
