"""Sums equal those of a plain recursion that halves the range, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.kernels.cpu.tree_sums import sums_of_narrow_integers, tree_sums

RNG = np.random.default_rng(3)


def summed(terms: np.ndarray, group: int = 32) -> np.float32:
    """Return the sum of float32 terms: halve the range recursively until it has at most ``group`` terms, and add these one by one."""
    if len(terms) > group:
        half = len(terms) // 2
        return summed(terms[:half], group) + summed(terms[half:], group)
    total = np.float32(0)
    for term in terms:
        total += term
    return total


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 65, 67, 129, 1000, 1027, 4096, 5003])
@pytest.mark.parametrize("inner", [1, 2, 3, 4, 5, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int16, np.int32])
def test_sums_along_an_axis(count: int, inner: int, dtype: type) -> None:
    data = (RNG.random((2, count, inner)) * 250 - (0 if dtype == np.uint8 else 100)).astype(dtype)
    mean = RNG.random((2, 1, inner), np.float32)
    floats = data.astype(np.float32)
    for found, terms in (
        (tree_sums(data, (1,)), floats),
        (tree_sums(data, (1,), square=True), floats * floats),
        (tree_sums(data, (1,), centre=mean), (floats - mean) ** 2),
    ):
        expected = [[summed(terms[outer, :, i]) for i in range(inner)] for outer in range(2)]
        np.testing.assert_array_equal(found, expected)


def test_later_dimensions_are_summed_first() -> None:
    data = RNG.random((50, 3, 7), np.float32)
    rows = [summed(data[i, 1]) for i in range(50)]
    assert tree_sums(data, (0, 2))[1] == summed(np.array(rows), 32 // 7)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("shape", [(1, 70_001, 3), (1, 300, 3), (2, 200, 1), (3, 999, 70), (2, 70_000, 1)])
@pytest.mark.parametrize("square", [False, True])
def test_exact_sums_of_parts_equal_those_of_small_groups(dtype: type, shape: tuple[int, ...], square: bool) -> None:
    limits = np.iinfo(dtype)
    for low in (limits.min, limits.max - 2):
        data = RNG.integers(low, limits.max, shape, dtype, endpoint=True)
        found = sums_of_narrow_integers(data, (shape[0], shape[2]), square)
        if square and data.itemsize > 1:
            assert found is None
        else:
            np.testing.assert_array_equal(found, tree_sums(data, (1,), square))


def test_wide_integers_are_left_to_the_tree() -> None:
    assert sums_of_narrow_integers(np.ones((1, 4, 1), np.int32), (1, 1), False) is None
    assert tree_sums(np.full((1, 1 << 15), 1 << 20, np.int32), (1,)) == math.ldexp(1, 35)
