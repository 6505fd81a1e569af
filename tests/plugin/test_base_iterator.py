"""Epochs, policies and resetting, compared with DALI's base iterator (``tests/golden/make_iterators.py``)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn
from penstock.plugin.base_iterator import BaseIterator, _DaliBaseIterator
from penstock.plugin.epochs import LastBatchPolicy

FOLDER = Path(__file__).parents[1] / "golden" / "iterators"
sys.path.insert(0, str(FOLDER))
from member_cases import BATCH, SAMPLES, trace  # noqa: E402

RECORDED = json.loads((FOLDER / "epochs.json").read_text(encoding="utf-8"))


class LabelIterator(BaseIterator):
    """An iterator that returns each pipeline's last output, as a list."""

    def _converted(self, outputs: list[tuple[Any, ...]]) -> list[list[int]]:
        return [batches[-1].as_array().reshape(-1).tolist() for batches in outputs]

    def _trimmed(self, batch: list[list[int]], kept: Any) -> list[list[int]]:
        return [labels[:count] for labels, count in zip(batch, kept)]


class IteratorAfterDali(_DaliBaseIterator):
    """An iterator written like DALI's, which defines ``__next__``."""

    def __next__(self) -> list[list[int]]:
        self._ever_consumed = True
        labels = [batches[-1].as_array().reshape(-1).tolist() for batches in self._get_outputs()]
        self._schedule_runs()
        self._advance_and_check_drop_last()
        if self._reader_name:
            cut, left = self._remove_padded()
            if np.any(cut):
                return [pipe_outputs[:count] for pipe_outputs, count in zip(labels, left)]
        return labels


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    for number in range(16):
        (folder / f"{number:02}.bin").write_bytes(b"x")
    return sorted(map(str, folder.iterdir()))


def reading(files: list[str], batch_size: int, shard: int = 0, **arguments: Any) -> Pipeline:
    pipe = Pipeline(batch_size, 1, None, enable_checkpointing=arguments.pop("checkpoints", False))
    with pipe:
        pipe.set_outputs(
            fn.readers.file(name="reader", files=files, labels=list(range(len(files))), shard_id=shard, **arguments)[1]
        )
    return pipe


def counting(batch_size: int, batches: int) -> Pipeline:
    pipe = Pipeline(batch_size, 1, None)
    with pipe:
        source = [np.arange(i * batch_size, (i + 1) * batch_size)[:, None] for i in range(batches)]
        pipe.set_outputs(fn.external_source(source, cycle="raise"))
    return pipe


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_members_that_programs_read_and_set_are_those_of_dali(files: list[str]) -> None:
    def pipeline(shard: int, shards: int, pad: bool, stick: bool) -> Pipeline:
        return reading(files[:SAMPLES], BATCH, shard, num_shards=shards, pad_last_batch=pad, stick_to_shard=stick)

    recorded = json.loads((FOLDER / "members.json").read_text(encoding="utf-8"))
    assert trace(IteratorAfterDali, pipeline, LastBatchPolicy) == recorded


def test_members_of_shards_are_those_of_readers(files: list[str]) -> None:
    """Arrays are read-only copies, as changes to them would have no effect."""
    iterator = IteratorAfterDali(reading(files, 4), reader_name="reader")
    with pytest.raises(ValueError, match="read-only"):
        iterator._shards_id[0] = 1
    with pytest.raises(AttributeError, match="made with `reader_name`"):
        _ = IteratorAfterDali(reading(files, 4))._shards_num


def title(case: dict[str, Any]) -> str:
    return "-".join(str(value) for key, value in case.items() if key not in ("epochs", "lengths"))


def begin(case: dict[str, Any], files: list[str], kind: type[BaseIterator]) -> BaseIterator:
    """Return an iterator with the settings of a recorded case."""
    pipelines = [
        reading(
            files[: case["samples"]],
            case["batch_size"],
            shard,
            num_shards=case["shards"],
            pad_last_batch=case["pad"],
            stick_to_shard=case["stick"],
        )
        for shard in case["pipelines"]
    ]
    policy = LastBatchPolicy[case["policy"]]
    if case["size"] > 0:
        return kind(pipelines, case["size"], auto_reset="yes", last_batch_policy=policy, last_batch_padded=case["pad"])
    return kind(pipelines, reader_name="reader", auto_reset="yes", last_batch_policy=policy)


@pytest.mark.parametrize("case", RECORDED[::11], ids=title)
@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_iterators_of_the_users_own(case: dict[str, Any], files: list[str]) -> None:
    iterator = begin(case, files, IteratorAfterDali)
    assert [list(iterator) for _ in case["epochs"]] == case["epochs"]
    assert iterator._size == iterator.size


@pytest.mark.parametrize("case", RECORDED, ids=title)
@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_epochs_are_those_of_dali(case: dict[str, Any], files: list[str]) -> None:
    iterator = begin(case, files, LabelIterator)
    epochs, lengths = [], []
    for _ in case["epochs"]:
        lengths.append(len(iterator))
        epochs.append(list(iterator))
    assert epochs == case["epochs"]
    assert lengths == case["lengths"]


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_partial_batches_of_a_given_size() -> None:
    iterator = LabelIterator(
        [counting(2, 9), counting(2, 9)], size=7, last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )
    assert list(iterator) == [[[0, 1], [0, 1]], [[2, 3], [2]]]
    assert len(iterator) == 2
    iterator = LabelIterator([counting(2, 9), counting(2, 9)], size=6, last_batch_policy=LastBatchPolicy.PARTIAL)
    assert list(iterator) == [[[0, 1], [0, 1]], [[2, 3]]]


def test_length_that_only_the_source_knows() -> None:
    assert len(LabelIterator([counting(2, 9)], last_batch_policy=LastBatchPolicy.DROP)) == 0
    # DALI divides -1 by the number of samples, and Python refuses a negative length.
    with pytest.raises(ValueError, match="should return >= 0"):
        len(LabelIterator([counting(1, 9)], last_batch_policy=LastBatchPolicy.PARTIAL))


def test_the_source_ends_the_epoch() -> None:
    iterator = LabelIterator(counting(2, 3), auto_reset=np.True_)
    expected = [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert [list(iterator) for _ in range(3)] == [expected] * 3
    assert iterator.size == -1


def test_without_auto_reset() -> None:
    iterator = LabelIterator(counting(2, 2), auto_reset="no")
    assert len(list(iterator)) == 2
    with pytest.raises(StopIteration):
        next(iterator)
    iterator.reset()
    assert iterator.next() == [[0, 1]]
    assert next(iterator) == [[2, 3]]
    with pytest.raises(StopIteration):
        next(iterator)
    # `iter` begins the next epoch, like `reset`.
    assert len(list(iterator)) == 2


def test_reset_in_the_middle_is_ignored(files: list[str], caplog: pytest.LogCaptureFixture) -> None:
    iterator = LabelIterator(reading(files[:6], 2), reader_name="reader")
    assert next(iterator) == [[0, 1]]
    with caplog.at_level(logging.WARNING):
        iterator.reset()
    assert "not finished" in caplog.text
    assert next(iterator) == [[2, 3]]


def test_first_batch_on_demand() -> None:
    asked = []

    def source(iteration: int) -> np.ndarray:
        asked.append(iteration)
        return np.zeros((1, 1))

    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source(source))
    iterator = LabelIterator(pipe, prepare_first_batch=False)
    assert asked == []
    next(iterator)
    assert asked


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (lambda: dict(pipelines=None), AssertionError),
        (lambda: dict(pipelines=[]), AssertionError),
        (lambda: dict(pipelines=[counting(2, 1), counting(3, 1)], size=2), AssertionError),
        (lambda: dict(pipelines=counting(2, 1), size=0), AssertionError),
        (lambda: dict(pipelines=[counting(2, 1)] * 2), AssertionError),
        (lambda: dict(pipelines=counting(2, 1), size=2, reader_name="reader"), AssertionError),
        (lambda: dict(pipelines=counting(2, 1), reader_name="reader", last_batch_padded=True), AssertionError),
        (lambda: dict(pipelines=counting(2, 1), auto_reset="perhaps"), ValueError),
        (lambda: dict(pipelines=counting(2, 1), auto_reset=1), ValueError),
        (lambda: dict(pipelines=counting(2, 1), last_batch_policy="FILL"), ValueError),
        (lambda: dict(pipelines=counting(2, 0)), RuntimeError),
        (lambda: dict(pipelines=counting(2, 1), reader_name="reader"), RuntimeError),
    ],
)
def test_wrong_arguments(arguments: Callable[[], dict[str, Any]], error: type[Exception]) -> None:
    with pytest.raises(error):
        LabelIterator(**arguments())


def test_warnings() -> None:
    with pytest.warns(UserWarning, match="reader_name"):
        LabelIterator(counting(2, 2), size=4)
    with pytest.warns(UserWarning, match="last_batch_policy"):
        LabelIterator(counting(2, 2), fill_last_batch=True)


def test_batches_of_varying_size_need_an_open_end(files: list[str]) -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source([np.zeros((2, 1)), np.zeros((1, 1))]))
    assert [len(batch[0]) for batch in LabelIterator(pipe)] == [2, 1]
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source([np.zeros((2, 1)), np.zeros((1, 1))]))
    with pytest.warns(UserWarning, match="reader_name"):
        iterator = LabelIterator(pipe, size=3)
    next(iterator)
    with pytest.raises(AssertionError, match="Variable batch size"):
        next(iterator)


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 6])
def test_checkpoints(files: list[str], taken: int) -> None:
    def endless(pipe: Pipeline) -> Any:
        iterator = LabelIterator(pipe, reader_name="reader", auto_reset=True)
        return iterator, (batch for _ in range(6) for batch in iterator)

    iterator, batches = endless(reading(files[:7], 2, checkpoints=True))
    for _ in range(taken):
        next(batches)
    (saved,) = iterator.checkpoints()
    expected = [next(batches) for _ in range(6)]
    restored = Pipeline(2, 1, None, enable_checkpointing=True, checkpoint=saved)
    with restored:
        restored.set_outputs(fn.readers.file(name="reader", files=files[:7], labels=list(range(7)), shard_id=0)[1])
    _, again = endless(restored)
    assert [next(again) for _ in range(6)] == expected


@pytest.mark.parametrize("policy", [LastBatchPolicy.FILL, LastBatchPolicy.PARTIAL])
def test_a_loop_after_a_checkpoint_at_the_end_of_an_epoch_goes_over_the_next(
    files: list[str], policy: LastBatchPolicy
) -> None:
    iterator = LabelIterator(reading(files[:4], 2, checkpoints=True), reader_name="reader", last_batch_policy=policy)
    taken = [next(iterator) for _ in range(2)]
    (saved,) = iterator.checkpoints()
    restored = Pipeline(2, 1, None, enable_checkpointing=True, checkpoint=saved)
    with restored:
        restored.set_outputs(fn.readers.file(name="reader", files=files[:4], labels=list(range(4)), shard_id=0)[1])
    again = LabelIterator(restored, reader_name="reader", last_batch_policy=policy)
    with pytest.raises(StopIteration):
        next(again)
    assert list(again) == taken


def test_checkpoints_must_be_enabled() -> None:
    with pytest.raises(ValueError, match="checkpointing disabled"):
        LabelIterator(counting(2, 2)).checkpoints()
