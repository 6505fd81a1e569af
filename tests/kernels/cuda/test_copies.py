"""Batches in GPU memory are copied when they are fed to a pipeline."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.kernels.cuda import copies
from penstock.tensors import TensorListGPU


@pipeline_def(batch_size=9, num_threads=1, device_id=0, prefetch_queue_depth=1)
def fed() -> Any:
    return fn.external_source(name="data", device="gpu")


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("kind", [list, np.stack, TensorListGPU])
def test_what_is_overwritten_was_copied(kind: Any, dtype: type) -> None:
    cupy = sys.modules["cupy"]
    rng = np.random.default_rng(1)
    differ = kind is not np.stack
    expected: list[np.ndarray] = [rng.integers(0, 255, (k if differ else 4, 5)).astype(dtype) for k in range(9)]
    arrays = [cupy.asarray(array) for array in expected]
    batch = cupy.asarray(np.stack(expected)) if kind is np.stack else kind(arrays)
    pipe = fed()
    pipe.build()
    pipe.feed_input("data", batch)
    for array in batch.samples if isinstance(batch, TensorListGPU) else batch:
        array[...] = 0
    (output,) = pipe.run()
    for sample, array in zip(output.as_cpu(), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), array)


def test_what_is_not_contiguous() -> None:
    cupy = sys.modules["cupy"]
    expected = [np.arange(6, dtype=np.uint8).reshape(2, 3) + k for k in range(9)]
    pipe = fed()
    pipe.build()
    pipe.feed_input("data", TensorListGPU.of_samples([cupy.asarray(array).T for array in expected]))
    (output,) = pipe.run()
    for sample, array in zip(output.as_cpu(), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), array.T)


def test_the_driver_s_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = sys.modules["cupy"]
    monkeypatch.setattr(copies, "make_calls", lambda _calls, _count: 700)
    pipe = fed()
    pipe.build()
    with pytest.raises(cupy.cuda.driver.CUDADriverError):
        pipe.feed_input("data", [cupy.asarray(np.zeros(3, np.uint8))])
