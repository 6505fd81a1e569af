"""Operators may begin work during the previous batch, also with several batches in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def
from penstock.operators.generic.copy import Copy
from penstock.schema.early_start import EarlyStart
from penstock.schema.workspace import Workspace

Log = list[tuple[str, int]]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Make `copy` an operator that begins early; return a list to which its calls are added, with the batches' numbers."""
    events: Log = []
    run = Copy.run

    def begin(self: Copy, workspace: Workspace) -> EarlyStart:
        events.append(("begin", workspace.iteration))
        if any(sample.size and sample.flat[0] == 1300 for sample in workspace.inputs[0].samples):
            raise ValueError("a bad number")
        workspace.begun = workspace.iteration
        return EarlyStart()

    def complete(self: Copy, workspace: Workspace) -> None:
        if workspace.begun is None:
            begin(self, workspace)
        assert workspace.begun == workspace.iteration
        events.append(("run", workspace.iteration))
        run(self, workspace)

    monkeypatch.setattr(Copy, "begins_early", True)
    monkeypatch.setattr(Copy, "begin", begin, raising=False)
    monkeypatch.setattr(Copy, "run", complete)
    return events


def numbers(step: int) -> list[np.ndarray]:
    return [np.full(3, step, np.float32), np.full(3, step + 0.5, np.float32)]


def piped(source: Callable[[int], Any] = numbers, **options: Any) -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, **options)
    def define() -> Any:
        data = fn.external_source(source)
        labels = fn.external_source(lambda step: [np.full(1, step), np.full(1, step)])
        return fn.copy(data) * 2 + fn.random.uniform(values=[0.0], seed=1), labels

    return define()


def values(outputs: Any) -> list[float]:
    return [float(sample[0]) for sample in map(np.array, outputs[0])]


@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 4}, {"exec_async": False, "exec_pipelined": False}])
def test_batches_come_in_order(log: Log, options: dict[str, Any]) -> None:
    pipe = piped(**options)
    for step in range(12):
        outputs = pipe.run()
        assert values(outputs) == [2 * step, 2 * step + 1]
        assert int(np.array(outputs[1][0])[0]) == step
    for what in ("begin", "run"):
        done = [iteration for event, iteration in log if event == what]
        assert done == list(range(len(done)))


def test_a_batch_is_begun_before_the_one_before_is_complete(log: Log) -> None:
    pipe = piped()
    for _ in range(6):
        pipe.run()
    assert log.index(("begin", 1)) < log.index(("run", 0))
    assert log.index(("begin", 4)) < log.index(("run", 3))


def test_the_error_of_a_beginning_comes_with_its_batch(log: Log) -> None:
    pipe = piped(lambda step: numbers(1300 if step == 3 else step))
    for step in range(3):
        assert values(pipe.run()) == [2 * step, 2 * step + 1]
    with pytest.raises(ValueError, match="a bad number"):
        pipe.run()


def test_what_a_consumer_waits_for_comes_though_nothing_more_is_fed(log: Log) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.copy(fn.external_source(name="data", blocking=True))

    pipe = define()
    pipe.build()
    for step in range(3):
        pipe.feed_input("data", numbers(step))
        assert values(pipe.run()) == [step, step + 0.5]


def test_the_end_of_the_data(log: Log) -> None:
    def source(step: int) -> list[np.ndarray]:
        if step == 3:
            raise StopIteration
        return numbers(step)

    pipe = piped(source)
    for _ in range(2):
        for step in range(3):
            assert values(pipe.run()) == [2 * step, 2 * step + 1]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


def test_checkpoints_hold_the_states_of_the_batch_that_was_taken(log: Log) -> None:
    def define() -> Any:
        data = fn.external_source(lambda info: np.full(2, info.idx_in_epoch, np.float32), batch=False)
        drawn = fn.copy(fn.random.uniform(range=[0, 1]))
        return drawn + fn.random.uniform(range=[0, 1]), fn.copy(data)

    def made(checkpoint: str | None = None) -> Pipeline:
        options: dict[str, Any] = {} if checkpoint is None else {"checkpoint": checkpoint}
        options |= {"enable_checkpointing": True, "batch_size": 2, "num_threads": 1, "device_id": None, "seed": 5}
        pipe: Pipeline = pipeline_def(define, **options)()
        pipe.build()
        return pipe

    whole = made()
    for _ in range(3):
        whole.run()
    resumed = made(whole.checkpoint())
    for _ in range(3):
        for one, other in zip(whole.run(), resumed.run()):
            np.testing.assert_array_equal(one.as_array(), other.as_array())


def test_closing_with_batches_on_their_way(log: Log) -> None:
    pipe = piped(prefetch_queue_depth=3)
    pipe.run()
    pipe.close()
    assert [iteration for event, iteration in log if event == "begin"][:2] == [0, 1]
