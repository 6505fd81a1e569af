"""Large arrays of uint8 are converted to float32, wherever in a cache line the results begin, and memory around them does not change."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu.casting import cast
from penstock.kernels.cpu.pixel_values import BEYOND_CACHE

_AROUND = 40


@pytest.mark.parametrize("more", [0, 1, 15, 17])
def test_every_alignment(more: int) -> None:
    count = BEYOND_CACHE // 4 + more
    source = np.random.default_rng(0).integers(0, 256, count, np.uint8)
    memory = np.empty(count + 2 * _AROUND, np.float32)
    for begin in range(0, _AROUND, 3):
        memory[:] = -1
        cast(source, memory[begin : begin + count])
        np.testing.assert_array_equal(memory[begin : begin + count], source)
        assert (memory[:begin] == -1).all()
        assert (memory[begin + count :] == -1).all()
