"""Batches that overlap on a GPU give what they give one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.runtime.plan import Plan
from penstock.runtime.turns import Turns
from penstock.schema import Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator

BATCHES = 12
_meeting = threading.Barrier(2)


@register_operator
class Meets(Operator):
    """Waits until two batches are in it at a time."""

    schema = Schema(name="_Meets", inputs=(Input("input"),), hidden=True)
    reentrant = True

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        return [OutputSpec(batch.dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute_batch(self, workspace: Workspace) -> None:
        _meeting.wait(timeout=30)
        super().compute_batch(workspace)

    def compute(self, sample: Sample) -> None:
        np.copyto(sample.outputs[0], sample.inputs[0])


def numbers() -> Iterator[list[np.ndarray]]:
    for batch in range(BATCHES):
        yield [np.full(3, batch * 10 + index, np.int32) for index in range(2)]


def pipeline(depth: int, source: Any, meet: bool) -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=2, device_id=0, prefetch_queue_depth=depth, seed=7)
    def definition() -> Any:
        data = fn.external_source(source=source, device="gpu")
        data = fn._meets(data) if meet else data
        return data + 1, fn.random.uniform(range=(0.0, 1.0)), fn.cast(data, dtype=types.FLOAT)

    return definition()


def batches(pipe: Pipeline, count: int) -> list[Any]:
    return [[np.stack([np.asarray(s.as_cpu()) for s in out]) for out in pipe.run()] for _ in range(count)]


def test_batches_overlap_and_keep_their_order() -> None:
    ahead, alone = pipeline(2, numbers(), True), pipeline(1, numbers(), False)
    for one, other in zip(batches(ahead, BATCHES), batches(alone, BATCHES)):
        for left, right in zip(one, other):
            np.testing.assert_array_equal(left, right)
    with pytest.raises(StopIteration):
        ahead.run()
    ahead.close()


def test_a_failure_holds_nobody_up() -> None:
    calls = iter(range(100))

    def sometimes(data: Any) -> Any:
        if next(calls) == 2:
            raise ValueError("the second batch fails")
        return data

    @pipeline_def(batch_size=2, num_threads=2, device_id=0, prefetch_queue_depth=3)
    def definition() -> Any:
        data = fn.external_source(source=numbers(), batch=True)
        return fn._meets(fn.python_function(data, function=sometimes).gpu())

    pipe = definition()
    # The first batch meets the third.
    assert np.asarray(pipe.run()[0][0].as_cpu())[0] == 0
    with pytest.raises(RuntimeError, match="the second batch fails"):
        pipe.run()
    assert np.asarray(pipe.run()[0][0].as_cpu())[0] == 20
    pipe.close()


def test_turns_go_by_number() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def definition() -> Any:
        return fn.external_source(name="x", device="gpu") + 1

    pipe = definition()
    turns = Turns(Plan(pipe.graph, 0).steps)
    entered = threading.Event()

    def second() -> None:
        turns.wait_for_sources(1)
        turns.enter(0, 1)
        entered.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not entered.wait(0.05)
    turns.enter(0, 0)
    turns.give_up(0)
    assert entered.wait(5)
    thread.join()
