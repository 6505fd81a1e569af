"""`triton_model` without a server; with one, it is tested in `tests/serving`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def


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
    with pytest.raises(ValueError, match="`timeout_seconds` is 0 or more"):
        calling(timeout_seconds=-1).build()
