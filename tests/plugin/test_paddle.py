"""Batches as PaddlePaddle tensors."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

with warnings.catch_warnings():
    # Paddle warns about missing tools when it is imported.
    warnings.simplefilter("ignore")
    import paddle

from penstock import fn, pipeline_def
from penstock.plugin.paddle import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy, feed_ndarray


@pytest.fixture
def files(tmp_path: Path) -> str:
    (tmp_path / "0").mkdir()
    for i in range(5):
        (tmp_path / "0" / f"{i}.jpg").write_bytes(bytes([i]))
    return str(tmp_path)


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def numbered(root: str) -> Any:
    return tuple(fn.readers.file(name="files", file_root=root))


@pytest.mark.parametrize(
    ("policy", "lengths"), [(LastBatchPolicy.FILL, [2, 2, 2]), (LastBatchPolicy.PARTIAL, [2, 2, 1])]
)
def test_batches_are_dictionaries_of_tensors(files: str, policy: LastBatchPolicy, lengths: list[int]) -> None:
    batches = list(DALIClassificationIterator(numbered(files), reader_name="files", last_batch_policy=policy))
    assert [len(batch[0]["data"]) for batch in batches] == lengths
    assert isinstance(batches[0][0]["label"], paddle.Tensor)
    assert batches[1][0]["data"].tolist() == [[2], [3]]


def test_ragged_outputs_are_lists() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def ragged() -> Any:
        return fn.external_source(lambda info: np.ones(info.idx_in_batch + 1, np.float32), batch=False)

    batch = next(DALIGenericIterator(ragged(), [("values", 1)]))
    assert [tensor.tolist() for tensor in batch[0]["values"]] == [[1.0], [1.0, 1.0]]


def test_a_batch_is_copied_into_a_tensor(files: str) -> None:
    batch = numbered(files).run()[0]
    target = paddle.zeros([2, 1], dtype="uint8")
    assert feed_ndarray(batch, target) is target
    assert target.tolist() == [[0], [1]]
    with pytest.raises(AssertionError, match="Shapes"):
        feed_ndarray(batch, paddle.zeros([2, 2], dtype="uint8"))
    with pytest.raises(AssertionError, match="element type"):
        feed_ndarray(batch, paddle.zeros([2, 1], dtype="int32"))


def test_names_are_one_for_each_output(files: str) -> None:
    with pytest.raises(AssertionError, match="distinct"):
        DALIGenericIterator(numbered(files), ["a", "a"], reader_name="files")
    with pytest.raises(IndexError, match="one name is needed"):
        DALIGenericIterator(numbered(files), ["a"], reader_name="files")
