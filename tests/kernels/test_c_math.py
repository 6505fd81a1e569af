"""The C library's functions are called in single precision, and return the right results."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels import c_math


@pytest.mark.parametrize(("function", "reference"), [(c_math.exp, np.exp), (c_math.log, np.log), (c_math.sin, np.sin)])
def test_functions_round_nearly_to_the_nearest(function: object, reference: object) -> None:
    values = np.random.default_rng(0).uniform(0.1, 30, (40, 5)).astype(np.float32)
    results = function(values)
    assert (results.dtype, results.shape) == (np.float32, values.shape)
    exact = reference(values.astype(np.float64))
    assert np.abs((results - exact) / np.spacing(results)).max() < 0.6


def test_numbers_and_nothing() -> None:
    assert c_math.exp(np.float32(0)) == 1
    assert c_math.log(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert np.isnan(c_math.log(np.float32([-1.0]))).all()
