"""Runs a case with its inputs on the GPU, and compares the outcome with DALI's."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import store
import tested_gpu
from case import Case
from comparison import BATCH_SIZE, BUILT_IN, Batch, difference

import penstock


class OnGpu:
    """Stands for the module `penstock`; cases that are defined with it have their sources on the GPU."""

    on_gpu = True

    def __getattr__(self, name: str) -> Any:
        return getattr(penstock, name)


def run_on_gpu(case: Case) -> list[list[Batch]]:
    """Run a case on the GPU; return, for each iteration, the outputs, each as a tuple of samples, layout and type."""
    settings = {
        "batch_size": BATCH_SIZE,
        "num_threads": 2,
        "device_id": tested_gpu.device(),
        "seed": 1234,
    } | case.options
    pipeline = penstock.pipeline_def(lambda: case.define(OnGpu()), **settings)()
    pipeline.build()
    iterations = []
    for _ in range(case.iterations):
        batches = [batch.as_cpu() for batch in pipeline.run()]
        iterations.append(
            [([np.array(t) for t in b], b.layout() or "", int(b.dtype) if len(b) else -1) for b in batches]
        )
    pipeline.close()
    return iterations


@functools.cache
def _recorded(family: str) -> dict[str, Any]:
    return store.load(family)


def check_on_gpu(family: str, case: Case) -> None:
    """Fail unless a case has, on the GPU, the outcome that was recorded from DALI on the CPU."""
    expected = _recorded(family)[case.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if isinstance(expected, dict):
            kinds = tuple(kind for kind in BUILT_IN if kind.__name__ in expected["error"])
            with pytest.raises(kinds or Exception):
                run_on_gpu(case)
        else:
            exact = case.exact if case.exact_on_gpu is None else case.exact_on_gpu
            assert difference(expected, run_on_gpu(case), replace(case, exact=exact)) == ""
