"""PyTorch functions as operators, with the results of DALI 2.4 on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from penstock import fn, pipeline_def


def source() -> Any:
    return fn.external_source(lambda _: [np.full((2, 3), k, np.float32) for k in range(3)], layout="HW")


def run(define: Callable[[], Any]) -> tuple[Any, ...]:
    return pipeline_def(batch_size=3, num_threads=1, device_id=None)(define)().run()


def test_samples() -> None:
    (out,) = run(lambda: fn.torch_python_function(source(), function=lambda x: torch.nn.functional.relu(x - 1)))
    assert out.as_array()[:, 0, 0].tolist() == [0, 0, 1]


def test_batches() -> None:
    (out,) = run(
        lambda: fn.torch_python_function(source(), function=lambda xs: [x.sum() for x in xs], batch_processing=True)
    )
    assert out.as_array().tolist() == [0, 6, 12]


def test_other_results_are_refused() -> None:
    with pytest.raises(RuntimeError, match="PyTorch"):
        run(lambda: fn.torch_python_function(source(), function=lambda x: x.numpy()))
