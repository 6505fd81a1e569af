"""Batches as PyTorch tensors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

from penstock import Pipeline, fn, types
from penstock.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    feed_ndarray,
    to_torch_tensor,
    to_torch_type,
)
from penstock.tensors import TensorCPU, TensorListCPU


def numbered(batches: int = 3, batch_size: int = 2) -> Pipeline:
    pipe = Pipeline(batch_size, 1, None)
    with pipe:
        source = [
            (np.full((batch_size, 2, 3), i, np.float32), np.full((batch_size, 1), i, np.int64)) for i in range(batches)
        ]
        pipe.set_outputs(*fn.external_source(source, num_outputs=2, cycle="raise"))
    return pipe


def ragged(batches: int = 2) -> Pipeline:
    pipe = Pipeline(2, 1, None)
    with pipe:
        source = [[np.arange(1, 3, dtype=np.float32), np.arange(1, 2, dtype=np.float32)]] * batches
        values = fn.external_source(source, cycle="raise")
        pipe.set_outputs(values, values, fn.cast(fn.reductions.sum(values), dtype=types.INT32))
    return pipe


def test_batches_are_dictionaries_of_tensors() -> None:
    batches = list(DALIGenericIterator(numbered(), ["images", "labels"]))
    assert [len(batch) for batch in batches] == [1, 1, 1]
    for index, batch in enumerate(batches):
        assert batch[0]["images"].shape == (2, 2, 3)
        assert batch[0]["images"].dtype == torch.float32
        assert torch.equal(batch[0]["images"], torch.full((2, 2, 3), float(index)))
        assert batch[0]["labels"].tolist() == [[index], [index]]


def test_classification() -> None:
    iterator = DALIClassificationIterator(numbered(), auto_reset=True)
    for _ in range(2):
        assert [sorted(batch[0]) for batch in iterator] == [["data", "label"]] * 3


def test_arguments_are_in_dalis_order() -> None:
    common = ["auto_reset", "fill_last_batch", "dynamic_shape", "last_batch_padded", "last_batch_policy"]
    common += ["prepare_first_batch"]
    for kind, own in (
        (DALIGenericIterator, ["pipelines", "output_map", "size", "reader_name"]),
        (DALIClassificationIterator, ["pipelines", "size", "reader_name"]),
        (DALIRaggedIterator, ["pipelines", "output_map", "size", "reader_name", "output_types"]),
    ):
        assert list(inspect.signature(kind).parameters) == own + common


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_partial_last_batch() -> None:
    iterator = DALIGenericIterator(
        [numbered(), numbered()], ["x", "y"], size=7, last_batch_policy=LastBatchPolicy.PARTIAL
    )
    assert [[len(pipe_outputs["x"]) for pipe_outputs in batch] for batch in iterator] == [[2, 2], [2, 1]]


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_]
)
def test_types(dtype: Any) -> None:
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source([np.ones((1, 2), dtype)]))
    tensor = next(DALIGenericIterator(pipe, ["x"]))[0]["x"]
    assert tensor.numpy().dtype == dtype
    assert tensor.tolist() == [[1, 1]]


def test_kept_batches_are_not_overwritten() -> None:
    batches = list(DALIGenericIterator(numbered(20), ["x", "y"]))
    assert [int(batch[0]["x"][0, 0, 0]) for batch in batches] == list(range(20))


def test_tensors_may_be_changed() -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(types.Constant(np.arange(3)))
    iterator = DALIGenericIterator(pipe, ["x"])
    for _ in range(4):
        tensor = next(iterator)[0]["x"]
        assert tensor.tolist() == [[0, 1, 2]] * 2
        tensor += 1


def test_wrong_names() -> None:
    with pytest.raises(AssertionError, match="distinct"):
        DALIGenericIterator(numbered(), ["x", "x"])
    with pytest.raises(IndexError, match="1 names"):
        DALIGenericIterator(numbered(), ["x"])


def test_shapes_that_differ_need_the_ragged_iterator() -> None:
    with pytest.raises((ValueError, RuntimeError)):
        DALIGenericIterator(ragged(), ["a", "b", "c"])
    kinds = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.SPARSE_COO_TAG, DALIRaggedIterator.DENSE_TAG]
    (batch,) = next(DALIRaggedIterator(ragged(), ["a", "b", "c"], output_types=kinds))
    assert [row.tolist() for row in batch["a"]] == [[1, 2], [1]]
    assert batch["b"].to_dense().tolist() == [[1, 2], [1, 0]]
    assert batch["c"].tolist() == [3, 1]
    with pytest.raises(AssertionError, match="SPARSE_COO_TAG"):
        DALIRaggedIterator(ragged(), ["a", "b", "c"], output_types=["thin"] * 3)
    with pytest.raises(IndexError, match="2 entries for 3 outputs"):
        DALIRaggedIterator(ragged(), ["a", "b", "c"], output_types=kinds[:2])


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_partial_ragged_batch() -> None:
    kinds = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.SPARSE_COO_TAG, DALIRaggedIterator.DENSE_TAG]
    iterator = DALIRaggedIterator(
        ragged(), ["a", "b", "c"], size=3, output_types=kinds, last_batch_policy=LastBatchPolicy.PARTIAL
    )
    _, ((last),) = iterator
    assert [row.tolist() for row in last["a"]] == [[1, 2]]
    assert last["b"].to_dense().tolist() == [[1, 2]]
    assert last["c"].tolist() == [3]


def test_type_of_each_of_dali_s() -> None:
    assert to_torch_type[types.FLOAT] is torch.float32
    assert to_torch_type[types.BOOL] is torch.bool
    assert {types.to_dali_type(torch_type) for torch_type in to_torch_type.values()} == set(to_torch_type)


def test_conversions() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    shared = to_torch_tensor(TensorCPU(array))
    copied = to_torch_tensor(TensorListCPU(array), copy=True)
    array[0, 0] = 9
    assert shared[0, 0] == 9
    assert copied[0, 0] == 0
    target = torch.zeros((2, 3), dtype=torch.int32)
    assert feed_ndarray(TensorListCPU(array), target) is target
    assert target.tolist() == array.tolist()
    with pytest.raises(AssertionError, match="element type"):
        feed_ndarray(TensorCPU(array), torch.zeros((2, 3)))
    with pytest.raises(AssertionError, match="Shapes"):
        feed_ndarray(TensorCPU(array), torch.zeros((3, 2), dtype=torch.int32))
