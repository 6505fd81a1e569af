"""Transposed copies equal numpy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.operators.generic._transpose_cpu import transpose


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(7, 9, 3), (3, 8, 11), (2, 3, 5, 7), (2, 5, 7, 3), (3, 20, 3), (1, 3, 3), (3, 0, 3), (40,)]
)
def test_equals_numpy(shape: tuple[int, ...], dtype: type) -> None:
    data = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 127, shape).astype(dtype)
    for permutation in itertools.permutations(range(len(shape))):
        for source in (data, data[::-1]):
            expected = source.transpose(permutation)
            target = np.empty(expected.shape, dtype)
            transpose(source, permutation, target)
            np.testing.assert_array_equal(target, expected)
