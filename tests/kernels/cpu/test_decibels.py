"""Decibels equal those computed with NumPy's logarithm, for any cutoff ratio."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu import decibels


@pytest.mark.parametrize("smallest", [1e-8, 1e-38, 1e-44])
@pytest.mark.parametrize("reference", [None, 2.0])
def test_equals_numpy(reference: float | None, smallest: float) -> None:
    exponents = np.random.default_rng(0).uniform(-44, 38, 1000)
    source = np.append(10.0**exponents, [0, 1, np.inf if reference else 1, -1]).astype(np.float32)
    least, out = np.float32(smallest), np.empty(source.shape, np.float32)
    factor = np.float32(10 / np.log(10))
    decibels.to_decibels(source, decibels.Logarithm(reference is None, np.float32(reference or 1), least, factor), out)
    scale = np.float32(1) / np.float32(reference or source.max())
    expected = 10 * np.log10(np.maximum(source * scale, least).astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
