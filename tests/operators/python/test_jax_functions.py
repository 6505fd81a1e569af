"""The arguments that ``fn.jax_function`` passes to functions."""

from __future__ import annotations

import numpy as np

from penstock.operators.python.jax_function import JaxFunction


def test_arrays_that_must_not_be_written_are_copied() -> None:
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    passed = JaxFunction._to_jax(array)
    assert np.asarray(passed).tolist() == [0, 1, 2]
