"""`decoders.numpy`: arrays in numpy's file format."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, types
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU


def _npy(array: Any) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, array)
    return np.frombuffer(file.getvalue(), np.uint8)


def _decode(batches: Sequence[Sequence[np.ndarray]], **arguments: Any) -> list[list[np.ndarray]]:
    remaining = iter(batches)
    pipe = Pipeline(len(batches[0]), 1, None, exec_async=False, exec_pipelined=False, prefetch_queue_depth=1)
    with pipe:
        encoded = fn.external_source(lambda: list(next(remaining)), ndim=1, dtype=types.UINT8)
        pipe.set_outputs(fn.decoders.numpy(encoded, **arguments))
    return [[np.array(sample) for sample in pipe.run()[0]] for _ in batches]


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays(order: str) -> None:
    array = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order)
    np.testing.assert_array_equal(_decode([[_npy(array)]])[0][0], array)


def test_types_that_are_converted_to_one() -> None:
    first, second = _decode([[_npy(np.float32([5, 6])), _npy(np.int32([5, 6]))]], dtype=types.FLOAT)[0]
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.zeros((2, 3, 4), np.float32), "the same number of dimensions"),
        (np.zeros((2, 3), np.int32), "the same data type"),
    ],
)
def test_arrays_that_differ(other: np.ndarray, message: str, size: int) -> None:
    samples = [_npy(np.zeros((2, 3), np.float32)), _npy(other)]
    with pytest.raises(RuntimeError, match=f"All samples in the dataset must have {message}"):
        _decode([samples[i : i + size] for i in range(0, 2, size)])


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (np.zeros(100, np.uint8), "Got bad magic string for numpy header"),
        (_npy(np.zeros(9, np.uint8))[:-1], "Expected data numpy size 137 bytes does not match the actual size 136"),
        (
            np.tile(_npy(np.zeros(9, np.uint8)), 2),
            "Expected data numpy size 137 bytes does not match the actual size 274",
        ),
        (_npy(np.zeros(3, np.complex64)), "Unknown Numpy type string: c8"),
    ],
)
def test_malformed(encoded: np.ndarray, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        _decode([[encoded]])


def test_served_arrays_settle_nothing_for_later_ones() -> None:
    pipe = Pipeline(1, 1, None, exec_async=False, exec_pipelined=False, prefetch_queue_depth=1)
    with pipe:
        encoded = fn.external_source(name="encoded", ndim=1, dtype=types.UINT8)
        pipe.set_outputs(fn.decoders.numpy(encoded))
    pipe.build()
    runner = PipelineRunner(pipe)
    for array in (np.zeros(3, np.int8), np.ones((2, 3), np.float32), np.array(7)):
        result = runner.run({"encoded": TensorListCPU.of_samples([_npy(array)], "")}, 1)
        np.testing.assert_array_equal(np.array(result.outputs[0].samples[0]), array)
