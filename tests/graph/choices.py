"""A condition and numbers that differ between samples, and the results of a graph for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import fn, pipeline_def


def flag() -> Any:
    return fn.external_source(lambda: [np.array(i % 2, np.bool_) for i in range(4)])


def number() -> Any:
    return fn.external_source(lambda: [np.array(i, np.int32) for i in range(4)])


def values(define: Callable[[], Any]) -> Any:
    pipeline = pipeline_def(define, batch_size=4, num_threads=1, enable_conditionals=True, seed=1)()
    outputs = [[np.array(t).tolist() for t in batch] for batch in pipeline.run()]
    return outputs[0] if len(outputs) == 1 else outputs
