"""`triton_model` without a server; with one, it is tested in `tests/serving`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated

from penstock import fn, pipeline_def
from penstock.data_types import FLOAT
from penstock.operators.inference.triton_model import serve_models
from penstock.schema.networks import NetworkTensor


@pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
def calling(timeout_seconds: float = 0) -> Any:
    return fn.triton_model(fn.external_source(name="x"), model="other", timeout_seconds=timeout_seconds)


def test_it_takes_a_server() -> None:
    with (
        calling() as pipeline,
        pytest.raises(RuntimeError, match="'other' can be called only by a pipeline that Triton runs"),
    ):
        pipeline.run(x=[np.ones(1, np.float32)])


def test_arguments_that_are_refused() -> None:
    with pytest.raises(ValueError, match="`timeout_seconds` must be 0 or more"):
        calling(timeout_seconds=-1).build()


class Slow:
    """A model that takes too long, and counts its calls."""

    title, max_batch_size = "The model", 4.0
    inputs = outputs = (NetworkTensor("x", FLOAT, ("batch", None)),)

    def __init__(self) -> None:
        self.calls = 0

    def rows_to_run(self, count: int) -> int:
        return count

    def run(self, arrays: Any, wanted: Any) -> Any:
        self.calls += 1
        raise TimeoutError("no answer")


def test_samples_of_a_call_that_took_too_long_are_not_called_again() -> None:
    model = Slow()
    serve_models(lambda name, version, seconds: model)
    try:
        given = [np.ones(2, np.float32)] * 4

        def define() -> Any:
            return fn.triton_model(fn.external_source(name="x", ndim=1), model="other")

        _, failures = isolated(define, x=given)
    finally:
        serve_models(None)
    assert sorted(failures) == [0, 1, 2, 3]
    assert model.calls == 1
