"""In watched runs, cancelled samples are not computed, and the time of each operator is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import CancelledError
from penstock.runtime.plan import Step


@pytest.fixture
def seen() -> list[float]:
    """Return a list to which the second operator adds the samples that reach it."""
    return []


@pytest.fixture
def pipeline(seen: list[float]) -> Iterator[Pipeline]:
    def note(x: np.ndarray) -> np.ndarray:
        seen.append(float(x))
        return np.array(x + 1)

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def define() -> Any:
        x = fn.external_source(name="x", dtype=types.FLOAT, ndim=0)
        y = fn.python_function(x * 10, function=note)
        return y, fn.external_source(name="late", dtype=types.FLOAT, ndim=0)

    with define() as built:
        built.build()
        built.feed_input("x", np.arange(3, dtype=np.float32))
        built.feed_input("late", np.arange(3, dtype=np.float32))
        yield built


class Watched:
    """Records the operators that ran; at each query, reports the next of the listed groups of samples as cancelled."""

    def __init__(self, *cancelled: tuple[int, ...]) -> None:
        self.ran: list[tuple[str, float]] = []
        self._cancelled = iter(cancelled)

    def operator_ran(self, step: Step, seconds: float) -> None:
        self.ran.append((step.node.display_name, seconds))

    def cancelled(self) -> tuple[int, ...]:
        return next(self._cancelled, ())


def test_cancelled_samples_fail_and_the_others_go_on(pipeline: Pipeline, seen: list[float]) -> None:
    result = pipeline.executor.run_once(isolate=True, watch=Watched((), (), (1,)))
    assert not result.stopped
    assert seen == [0, 20]
    assert list(result.failures) == [1]
    assert isinstance(result.failures[1], CancelledError)
    assert [float(sample) for index, sample in enumerate(result.outputs[0].samples) if index != 1] == [1, 21]


def test_a_run_that_nobody_waits_for_stops(pipeline: Pipeline, seen: list[float]) -> None:
    result = pipeline.executor.run_once(isolate=True, watch=Watched((), (0, 2), (1,)))
    assert result.stopped
    assert seen == []
    assert result.outputs == []
    assert sorted(result.failures) == [0, 1, 2]


def test_a_run_whose_samples_all_fail_goes_on_unless_they_are_cancelled() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def define() -> Any:
        x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
        return fn.slice(x, start=[5], shape=[5]), fn.external_source(name="y")

    with define() as built:
        built.build()
        built.feed_input("x", np.ones((2, 3), np.float32))
        built.feed_input("y", np.ones((2, 1), np.float32))
        result = built.executor.run_once(isolate=True, watch=Watched())
    assert not result.stopped
    assert sorted(result.failures) == [0, 1]
    assert not any(isinstance(error, CancelledError) for error in result.failures.values())
    assert [len(output) for output in result.outputs] == [2, 2]


def test_each_operators_time_is_told(pipeline: Pipeline) -> None:
    watch = Watched()
    pipeline.executor.run_once(watch=watch)
    assert len(watch.ran) == len(pipeline.executor.plan.operators)
    assert "penstock.fn.python_function" in [name for name, _ in watch.ran]
    assert all(0 < seconds < 10 for _, seconds in watch.ran)
