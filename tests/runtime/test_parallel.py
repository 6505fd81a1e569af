"""External sources run in worker processes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.pipeline import do_not_convert
from penstock.runtime.worker_processes import WorkerError


def samples(info: types.SampleInfo) -> np.ndarray:
    if info.iteration >= 4:
        raise StopIteration
    return np.full((info.idx_in_batch + 1, 3), info.idx_in_epoch, np.int32)


def batches(iteration: int) -> list[np.ndarray]:
    if iteration >= 4:
        raise StopIteration
    return [np.full(2, iteration, np.int32)] * 3


def growing(info: types.SampleInfo) -> np.ndarray:
    return np.full(10 ** (1 + info.iteration), info.idx_in_epoch, np.int32)


def dying(info: types.SampleInfo) -> Any:
    if info.iteration == 2:
        os.kill(os.getpid(), 9)
    return np.int32(1)


def raising(info: types.SampleInfo) -> Any:
    raise LookupError("mine")


def pipeline(
    source: Any, batch: bool = False, depth: int = 1, cycle: Any = None, py_num_workers: int = 2, **options: Any
) -> Pipeline:
    @pipeline_def(batch_size=3, num_threads=1, py_num_workers=py_num_workers, **options)
    def define() -> Any:
        return fn.external_source(source, parallel=True, batch=batch, prefetch_queue_depth=depth, cycle=cycle)

    return define()


def epoch(of: Pipeline) -> list[list[int]]:
    received = []
    try:
        while True:
            received.append([int(np.array(t).ravel()[0]) for t in of.run()[0]])
    except StopIteration:
        of.reset()
    return received


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(("source", "batch"), [(samples, False), (batches, True)])
def test_epochs(method: str, source: Any, batch: bool) -> None:
    expected = [[i] * 3 for i in range(4)] if batch else [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(4)]
    pipe = pipeline(source, batch, depth=2, py_start_method=method)
    assert [epoch(pipe), epoch(pipe)] == [expected, expected]
    pipe.close()


def mapped_memory() -> set[str]:
    """Return the inodes of workers' shared memory that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if "/memfd:penstock" in line}


def test_memory_grows_and_leaves_nothing_behind() -> None:
    before = mapped_memory()
    pipe = pipeline(growing)
    for i in range(5):
        batch = pipe.run()[0]
        assert batch.shape() == [(10 ** (1 + i),)] * 3
        assert [int(batch.at(k)[-1]) for k in range(3)] == [3 * i, 3 * i + 1, 3 * i + 2]
    capacities = pipe.external_source_shm_statistics()["capacities"]
    assert max(capacities) >= 4 * 10**5
    assert len(mapped_memory() - before) == len(capacities)
    pipe.close()
    del batch, pipe
    # Memory of earlier tests may have been freed meanwhile, so there may be less than before.
    assert mapped_memory() <= before


def test_a_killed_worker_is_an_error_and_no_hang() -> None:
    pipe = pipeline(dying)
    with pytest.raises(WorkerError, match="died"):  # noqa: PT012
        for _ in range(5):
            pipe.run()
    pipe.close()


def test_errors_of_callbacks_come_with_the_workers_traceback() -> None:
    pipe = pipeline(raising)
    with pytest.raises(
        Exception, match=r"received from worker thread:(.|\n)*in raising(.|\n)*LookupError: mine"
    ) as caught:
        pipe.run()
    assert type(caught.value) is Exception
    assert isinstance(caught.value.__cause__, LookupError)
    pipe.close()


def textual(info: types.SampleInfo) -> Any:
    return "42"


def test_what_is_no_tensor_is_refused_in_the_worker() -> None:
    pipe = pipeline(textual)
    with pytest.raises(Exception, match=r"Unsupported callback return type\. .*Got <class 'str'>"):
        pipe.run()
    pipe.close()


def test_what_cannot_be_sent_to_spawned_workers_is_refused() -> None:
    lock = threading.Lock()
    pipe = pipeline(lambda info: np.int32(lock.locked()), py_start_method="spawn")
    with pytest.raises(TypeError, match="py_callback_pickler"):
        pipe.build()


def test_local_functions_go_to_spawned_workers() -> None:
    factor = np.int32(3)

    def scaled(info: Any) -> np.ndarray:
        return factor * info.idx_in_epoch

    pipe = pipeline(lambda info: scaled(info), py_start_method="spawn")
    assert pipe.run()[0].as_array().tolist() == [0, 3, 6]
    pipe.close()


@pytest.mark.parametrize(
    "pickler",
    [cloudpickle, (cloudpickle, {"protocol": 4}), [cloudpickle, {"protocol": 4}, {"encoding": "bytes"}]],
    ids=["a module", "with arguments for dumps", "with arguments for loads"],
)
def test_a_pickler_of_the_users(pickler: Any) -> None:
    factor = np.int32(3)
    pipe = pipeline(lambda info: factor * info.idx_in_epoch, py_start_method="spawn", py_callback_pickler=pickler)
    assert pipe.run()[0].as_array().tolist() == [0, 3, 6]
    pipe.close()


def test_a_callback_defined_where_conditionals_are_rewritten_is_refused() -> None:
    def factory(size: int) -> Any:
        return lambda info: np.full(size, 10)

    def define() -> Any:
        return fn.external_source(factory(3), batch=False, parallel=True)

    settings: dict[str, Any] = {"batch_size": 2, "num_threads": 1, "device_id": None, "enable_conditionals": True}
    with pytest.raises(ValueError, match="must remain unconverted"):
        pipeline_def(**settings)(define)()
    unconverted = do_not_convert(factory)
    pipe = pipeline_def(**settings)(lambda: fn.external_source(unconverted(3), batch=False, parallel=True))()
    assert pipe.run()[0].shape() == [(3,), (3,)]
    pipe.close()


def test_iterables_keep_their_order() -> None:
    pipe = pipeline([[np.int32(3 * i + j) for j in range(3)] for i in range(3)], batch=True, py_num_workers=1)
    assert epoch(pipe) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    pipe.close()


@pytest.mark.parametrize("depth", [1, 3])
def test_each_epoch_of_an_iterable_begins_at_its_beginning(depth: int) -> None:
    rounds = [[np.int32(3 * i + j) for j in range(3)] for i in range(3)]
    pipe = pipeline(rounds, batch=True, depth=depth, cycle="raise", py_num_workers=1)
    for _ in range(3):
        assert epoch(pipe) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    pipe.close()


def test_samples_of_iterables_are_refused() -> None:
    with pytest.raises(TypeError, match="an iterable must be run in a batch mode"):
        pipeline([np.int32(1)])


@pytest.mark.parametrize(
    "options",
    [{"no_copy": False}, {"prefetch_queue_depth": 0}, {"bytes_per_sample_hint": 0}],
    ids=lambda o: next(iter(o)),
)
def test_settings_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        fn.external_source(samples, batch=False, parallel=True, **options)


def test_number_of_workers() -> None:
    with pytest.raises(RuntimeError, match="py_num_workers"):
        pipeline(samples, py_num_workers=0).build()
    pipe = pipeline([[np.int32(0)] * 3], batch=True, py_num_workers=2)
    with pytest.warns(Warning, match="only 1 python worker"):
        pipe.build()
    pipe.close()


def test_callbacks_must_take_an_argument() -> None:
    with pytest.raises(TypeError, match="one argument"):
        pipeline(lambda: np.int32(1))


def test_batches_that_are_kept_stay_as_they_are() -> None:
    pipe = pipeline(lambda info: np.full(1000, info.idx_in_epoch, np.int32))
    kept = [pipe.run()[0] for _ in range(12)]
    assert [[int(np.asarray(sample)[999]) for sample in batch] for batch in kept] == [
        [3 * i, 3 * i + 1, 3 * i + 2] for i in range(12)
    ]
    del kept
    numbers = []
    for _ in range(2):
        for _ in range(12):
            pipe.run()
        numbers.append(len(pipe.external_source_shm_statistics()["capacities"]))
    assert numbers[0] == numbers[1], "memory that is free is used again"
    pipe.close()


def test_the_workers_can_be_looked_after() -> None:
    pipe = pipeline(samples)
    assert pipe._py_pool is None
    pipe.start_py_workers()
    first = pipe._py_pool.pids()
    assert len(first) == 2
    pipe.build()
    assert pipe._py_pool.pids() == pipe._py_pool.pool.pids() == first
    assert not pipe._py_pool.pool._observer.thread.is_alive()
    pipe.close()
    assert not pipe._py_pool_started


def test_workers_end_when_their_channel_is_closed_whoever_else_was_forked() -> None:
    @pipeline_def(batch_size=2, num_threads=1, py_num_workers=2, py_start_method="fork")
    def define() -> Any:
        return tuple(fn.external_source(samples, parallel=True, batch=False) for _ in range(2))

    pipes = [define(), define()]
    for pipe in pipes:
        pipe.run()
    workers = [worker for source in pipes[0]._session.sources for worker in source._workers]
    for worker in workers:
        worker.channel.close()
        worker.process.join(60)
    assert [worker.process.exitcode for worker in workers] == [0] * 4
    for pipe in pipes:
        pipe.close()
