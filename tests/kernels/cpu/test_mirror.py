"""Mirrored copies equal NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu.mirror import mirror_axis


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(4, 15, 3), (4, 16, 3), (5, 37, 3), (2, 3, 33), (5, 37, 4), (2, 4, 20, 1), (0, 20, 3)]
)
def test_equals_numpy(shape: tuple[int, ...], dtype: type) -> None:
    data = np.random.default_rng(0).integers(0, 127, shape).astype(dtype)
    axis = len(shape) - 1 if shape[-1] > 4 else len(shape) - 2
    for source in (data, data[::-1], data[:, ::2]):
        target = np.empty(source.shape, dtype)
        mirror_axis(source, axis, target)
        np.testing.assert_array_equal(target, np.flip(source, axis))
