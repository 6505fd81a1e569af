"""Samples that cannot be read or decoded raise an error, are skipped, or are replaced; a new epoch may follow an error."""

from __future__ import annotations

import itertools
import os
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import OperatorError, TooManyErrorsError
from penstock.plugin.base_iterator import BaseIterator
from penstock.plugin.epochs import LastBatchPolicy
from penstock.runtime.batches import kept_of
from penstock.runtime.tolerance import kept_samples
from penstock.tensors import TensorListCPU

_COUNT = 10
# Of the ten files, three are bad: one is in an unknown format, one is missing, one is truncated.
_WRONG, _MISSING, _SHORT = 3, 5, 7
_GOOD = [number for number in range(_COUNT) if number not in (_WRONG, _MISSING, _SHORT)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{number}.png" for number in range(_COUNT)]
    for number, path in enumerate(paths):
        Image.new("RGB", (8, 8), (number, number, number)).save(path)
    paths[_WRONG].write_bytes(b"This is no image.")
    paths[_SHORT].write_bytes(paths[_SHORT].read_bytes()[:50])
    paths[_MISSING].unlink()
    return list(map(str, paths))


def _reading(files: list[str], batch_size: int = 4, on_error: str | None = None, **settings: Any) -> Pipeline:
    """Return a pipeline that returns images and labels of files; ``on_error`` is an argument of reader and decoder."""
    own = {} if on_error is None else {"on_error": on_error}
    reader = {name: settings.pop(name) for name in ("pad_last_batch", "num_shards", "shard_id") if name in settings}

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, **settings)
    def pipeline() -> Any:
        encoded, labels = fn.readers.file(files=files, name="reader", **reader, **own)
        images = fn.decoders.image(encoded, **own)
        return fn.cast(fn.resize(images, size=(4, 4)), dtype=types.FLOAT), labels

    return pipeline()


def _run(pipeline: Pipeline) -> tuple[list[int], list[int]]:
    images, labels = pipeline.run()
    return [int(np.asarray(image)[0, 0, 0]) for image in images], [int(np.asarray(label)[0]) for label in labels]


def test_skipped(files: list[str]) -> None:
    for pipeline in (_skipping(files), _reading(files, on_error="skip", pad_last_batch=True)):
        assert [_run(pipeline) for _ in range(3)] == [([0, 1, 2],) * 2, ([4, 6],) * 2, ([8, 9, 9, 9],) * 2]


def _skipping(files: list[str], policy: str = "skip", **settings: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, on_error=policy, **settings)
    def pipeline() -> Any:
        encoded, labels = fn.readers.file(files=files, name="reader", pad_last_batch=True)
        return fn.cast(fn.resize(fn.decoders.image(encoded), size=(4, 4)), dtype=types.FLOAT), labels

    return pipeline()


def test_replaced_by_a_neighbour(files: list[str]) -> None:
    pipeline = _skipping(files, "replace")
    assert [_run(pipeline) for _ in range(3)] == [([0, 1, 2, 2],) * 2, ([4, 4, 6, 6],) * 2, ([8, 9, 9, 9],) * 2]


@pytest.mark.parametrize(
    ("failed", "kept"),
    [
        ({}, [0, 1, 2, 3]),
        ({0: "replace"}, [1, 1, 2, 3]),
        ({0: "skip", 3: "replace"}, [1, 2, 2]),
        (dict.fromkeys(range(4), "replace"), []),
        (dict.fromkeys(range(4), "skip"), []),
    ],
)
def test_what_stands_for_what(failed: dict[int, str], kept: list[int]) -> None:
    assert kept_samples(4, failed) == kept


def test_parts_of_kept_samples_are_kept() -> None:
    parts = TensorListCPU.of_samples([np.full(1, number) for number in range(5)])
    assert kept_of(parts, [0, 3]).positions is None
    assert [int(part[0]) for part in kept_of(parts, [0, 3]).samples] == [0, 3]
    parts.positions = [0, 0, 1, 3, 3]
    kept = kept_of(parts, [0, 2, 3])
    assert [int(part[0]) for part in kept.samples] == [0, 1, 3, 4]
    assert kept.positions == [0, 0, 2, 2]


def test_listed(files: list[str]) -> None:
    pipeline = _skipping(files, prefetch_queue_depth=1)
    for _ in range(2):
        pipeline.run()
    wrong, missing, short = pipeline.skipped
    assert len(pipeline.skipped) == pipeline.skipped.count == 3
    assert [sample.source for sample in (wrong, missing, short)] == [files[i] for i in (_WRONG, _MISSING, _SHORT)]
    assert "begin with b'This is '" in wrong.reason
    assert missing.operator == "penstock.fn.readers.file"
    assert short.operator == "penstock.fn.decoders.image"
    assert [(sample.iteration, sample.sample) for sample in (wrong, missing, short)] == [(0, 3), (1, 1), (1, 3)]


def test_records_are_listed_with_their_place(tmp_path: Path) -> None:
    records = [struct.pack("<II", 0xCED7230A, 24 + 4) + struct.pack("<IfQQ", 0, i, i, 0) + b"data" for i in range(4)]
    starts = np.cumsum([0, *map(len, records)]).tolist()
    records[2] = b"nothing." + records[2][8:]
    (tmp_path / "a.rec").write_bytes(b"".join(records))
    (tmp_path / "a.idx").write_text("".join(f"{i}\t{start}\n" for i, start in enumerate(starts[:-1])))

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, on_error="skip", prefetch_queue_depth=1)
    def pipeline() -> Any:
        return tuple(fn.readers.mxnet(path=str(tmp_path / "a.rec"), index_path=str(tmp_path / "a.idx")))

    running = pipeline()
    _, labels = running.run()
    assert [float(np.asarray(label)[0]) for label in labels] == [0, 1, 3]
    (sample,) = running.skipped
    assert sample.source == f"{tmp_path / 'a.rec'} at index {starts[2]}"


def test_so_many_and_no_more(files: list[str]) -> None:
    pipeline = _skipping(files, max_errors=2, prefetch_queue_depth=1)
    _run(pipeline)
    with pytest.raises(TooManyErrorsError, match=rf"3 samples .* allows 2\. The latest: {files[_SHORT]}"):
        _run(pipeline)


def test_raised_by_default_and_where_an_operator_says_so(files: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, on_error="skip")
    def strict() -> Any:
        return fn.decoders.image(fn.readers.file(files=files)[0], on_error="raise")

    for pipeline in (strict(), _reading(files)):
        with pytest.raises(OperatorError, match="sample #3 of the batch"):
            pipeline.run()


def test_errors_of_other_operators_are_raised(files: list[str]) -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, on_error="skip")
    def pipeline() -> Any:
        images = fn.decoders.image(fn.readers.file(files=files)[0])
        return fn.crop(images, crop=(100, 2))

    with pytest.raises(OperatorError, match=r"fn\.crop"):
        pipeline().run()


@pytest.mark.parametrize("settings", [{"on_error": "ignore"}, {"max_errors": -1}])
def test_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"`on_error` is 'ignore'; use one of|`max_errors` must not be negative"):
        Pipeline(1, 1, None, **settings)


def test_an_operator_names_the_line_of_a_wrong_policy(files: list[str]) -> None:
    with pytest.raises(ValueError, match=r"encoded, labels = [\s\S]*`on_error` is 'ignore'"):
        _reading(files, on_error="ignore").build()


# -- iterators ---------------------------------------------------------------------------------------------------------


class _Labels(BaseIterator):
    """An iterator that returns labels, the pipelines' second output."""

    def _converted(self, outputs: list[tuple[Any, ...]]) -> list[list[int]]:
        return [[int(np.asarray(label)[0]) for label in batches[-1]] for batches in outputs]

    def _trimmed(self, batch: list[list[int]], kept: Any) -> list[list[int]]:
        return [labels[:count] for labels, count in zip(batch, kept)]


def _epoch(iterator: BaseIterator) -> list[int]:
    return [label for batch in iterator for labels in batch for label in labels]


@pytest.mark.parametrize("batch_size", [1, 4, 7, 16])
def test_an_epoch_has_what_is_good(files: list[str], batch_size: int) -> None:
    pipeline = _reading(files, batch_size, "skip", pad_last_batch=True)
    iterator = _Labels(pipeline, reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True)
    assert [_epoch(iterator) for _ in range(3)] == [_GOOD] * 3


def test_an_epoch_after_an_error_is_a_whole_one(files: list[str]) -> None:
    """No batch that was prefetched for the failed epoch appears in the next epoch."""
    state = {"broken": True}

    def check(label: np.ndarray) -> np.ndarray:
        if state["broken"] and label[0] == 5:
            raise ValueError("broken")
        return label

    @pipeline_def(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=2)
    def pipeline() -> Any:
        _, labels = fn.readers.file(files=[files[0]] * _COUNT, labels=list(range(_COUNT)), name="reader")
        numbers = fn.external_source(source=lambda info: np.array([info.idx_in_epoch]), batch=False)
        return numbers, fn.python_function(labels, function=check)

    iterator = _Numbered(pipeline(), reader_name="reader", auto_reset=True, prepare_first_batch=False)
    with pytest.raises(OperatorError, match="broken"):
        list(iterator)
    state["broken"] = False
    numbers, labels = zip(*[pair for batch in iterator for pair in batch])
    assert labels == (*range(_COUNT), 0, 1)
    assert numbers == tuple(range(12))


class _Numbered(BaseIterator):
    """An iterator that returns pairs of both outputs."""

    def _converted(self, outputs: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
        ((first, second),) = outputs
        return [(int(np.asarray(a)[0]), int(np.asarray(b)[0])) for a, b in zip(first, second)]


@pytest.mark.parametrize("random_shuffle", [False, True])
@pytest.mark.parametrize("stick_to_shard", [False, True])
def test_shards_after_an_error(files: list[str], random_shuffle: bool, stick_to_shard: bool) -> None:
    state = {"broken": False}

    def check(label: np.ndarray) -> np.ndarray:
        if state["broken"]:
            raise ValueError("broken")
        return label

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline(shard: int) -> Any:
        order = {"random_shuffle": random_shuffle, "stick_to_shard": stick_to_shard, "initial_fill": 3, "seed": 3}
        shards = {"num_shards": 2, "shard_id": shard, "pad_last_batch": True}
        labels = list(range(_COUNT))
        _, numbers = fn.readers.file(files=[files[0]] * _COUNT, labels=labels, name="reader", **order, **shards)
        return fn.python_function(numbers, function=check)

    def started() -> BaseIterator:
        return _Labels([pipeline(0), pipeline(1)], reader_name="reader", auto_reset=True, prepare_first_batch=False)

    whole = started()
    expected = [_by_pipeline(whole) for _ in range(2)][1]
    iterator = started()
    next(iterator)
    state["broken"] = True
    with pytest.raises(OperatorError, match="broken"):
        list(iterator)
    state["broken"] = False
    iterator.reset()
    assert _by_pipeline(iterator) == expected


def _by_pipeline(iterator: BaseIterator) -> list[set[int]]:
    """Run an epoch; return the set of each pipeline's results."""
    return [set(itertools.chain(*batches)) for batches in zip(*iterator)]


def _numbers(info: Any) -> np.ndarray:
    return np.array([info.idx_in_epoch])


@pytest.mark.parametrize("how", ["killed", "cycling"])
def test_a_dead_worker_is_replaced_by_a_reset(how: str) -> None:
    source: Callable[..., Any] | list[Any] = _numbers if how == "killed" else [np.array([[i], [i]]) for i in range(5)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, py_num_workers=1 + (how == "killed"))
    def pipeline() -> Any:
        return fn.external_source(source=source, batch=how != "killed", parallel=True, cycle=None)

    with pipeline() as running:
        expected = [_values(running) for _ in range(2)]
        pids = running._py_pool.pids()  # type: ignore[attr-defined]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="died"):
            [running.run() for _ in range(9)]
        running.reset()
        assert [_values(running) for _ in range(2)] == expected


def _values(pipeline: Pipeline) -> list[int]:
    (numbers,) = pipeline.run()
    return [int(np.asarray(number)[0]) for number in numbers]
