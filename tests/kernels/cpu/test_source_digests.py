"""Digests of kernels' sources are the same with each version of NumPy, because a server may have another version than the one with which
the library was compiled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.kernels.cpu.source_digests import digest_of


def _kernel(factor: np.generic) -> Callable[[float], object]:
    def scaled(value: float) -> object:
        return value * factor

    return scaled


def test_scalars_count_by_their_type_and_value() -> None:
    scalars = [np.float32(0.75), np.float32(1 << 25), np.float64(0.75), np.int32(3), np.bool_(True), np.bool_(False)]
    digests = [digest_of(_kernel(scalar)) for scalar in scalars]
    assert len(set(digests)) == len(scalars)
    assert digests == [digest_of(_kernel(scalar.copy())) for scalar in scalars]


def test_the_way_in_which_numpy_writes_scalars_does_not_count() -> None:
    digests = []
    for legacy in (False, "1.25"):
        with np.printoptions(legacy=legacy):
            digests.append([digest_of(_kernel(np.float32(value))) for value in (0.75, 1 << 25)])
    assert digests[0] == digests[1]
