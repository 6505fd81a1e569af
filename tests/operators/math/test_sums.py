"""Sums of bytes, which kernels first add up in integers of 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import dynamic


@pytest.mark.parametrize("value", [np.uint8(255), np.int8(-128), np.int8(127)])
@pytest.mark.parametrize("shape", [(1000, 3), (256, 2, 257), (255, 1), (0, 4), (7,)])
def test_no_sum_of_extreme_bytes_is_cut_off(value: np.generic, shape: tuple[int, ...]) -> None:
    data = np.full(shape, value)
    for axes in ([0], [len(shape) - 1], list(range(len(shape)))):
        found = np.asarray(dynamic.reductions.sum(data, axes=axes))
        assert found.dtype == (np.uint64 if value.dtype == np.uint8 else np.int64)
        assert np.array_equal(found, data.astype(np.int64).sum(axis=tuple(axes)))


def test_sums_in_the_type_of_bytes_wrap_around() -> None:
    data = np.arange(200, dtype=np.uint8)
    found = np.asarray(dynamic.reductions.sum(data, axes=[0], dtype=dynamic.uint8))
    assert found == data.sum(dtype=np.uint8)


@pytest.mark.parametrize("value", [np.uint8(255), np.int8(-128)])
@pytest.mark.parametrize("shape", [(1 << 16, 2), ((1 << 16) + 1, 1), (3, 5)])
def test_no_sum_of_squared_bytes_is_cut_off(value: np.generic, shape: tuple[int, ...]) -> None:
    for axes in ([0], [0, 1]):
        found = np.asarray(dynamic.reductions.mean_square(np.full(shape, value), axes=axes))
        np.testing.assert_allclose(found, float(value) ** 2, rtol=1e-6)
