"""Every case of the goldens with its input on the GPU gives what real DALI gave on the CPU."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
import store
from case import Case
from comparison import BATCH_SIZE, BUILT_IN, difference
from families import families

import penstock


class _OnGpu:
    """Penstock, but that the sources that cases make are on the GPU."""

    def __init__(self) -> None:
        self.on_gpu = True

    def __getattr__(self, name: str) -> Any:
        return getattr(penstock, name)


@functools.cache
def recorded(family: str) -> dict[str, Any]:
    return store.load(family)


ALL = [
    pytest.param(family.name, case, id=f"{family.name}: {case.name}")
    for family in families()
    for case in family
    if family.gpu and case.gpu
]


def run_on_gpu(case: Case) -> list[list[tuple[list[np.ndarray], str, int]]]:
    settings = {"batch_size": BATCH_SIZE, "num_threads": 2, "device_id": 0, "seed": 1234} | case.options
    pipeline = penstock.pipeline_def(lambda: case.define(_OnGpu()), **settings)()
    pipeline.build()
    iterations = []
    for _ in range(case.iterations):
        batches = [batch.as_cpu() for batch in pipeline.run()]
        iterations.append(
            [([np.array(t) for t in b], b.layout() or "", int(b.dtype) if len(b) else -1) for b in batches]
        )
    pipeline.close()
    return iterations


@pytest.mark.parametrize(("family", "case"), ALL)
def test_equals_dali(family: str, case: Case) -> None:
    expected = recorded(family)[case.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if isinstance(expected, dict):
            kinds = tuple(kind for kind in BUILT_IN if kind.__name__ in expected["error"])
            with pytest.raises(kinds or Exception):
                run_on_gpu(case)
        else:
            assert difference(expected, run_on_gpu(case), case) == ""
