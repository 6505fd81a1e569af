"""Outputs belong to the batch that was fed, even if an operator misbehaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import OperatorError
from penstock.operators.sources.external_source import ExternalSource
from penstock.serving.pipeline_runner import MixUpError, PipelineRunner
from penstock.tensors import TensorListCPU


@pipeline_def(
    batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False
)
def added() -> Any:
    a = fn.external_source(name="a", dtype=types.INT32, ndim=1)
    return a + fn.external_source(name="b", dtype=types.INT32, ndim=1)


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    made = added()
    yield made
    made.close()


def fed(a: int, b: int, count: int = 1) -> dict[str, TensorListCPU]:
    return {name: TensorListCPU([np.full(2, n, np.int32)] * count) for name, n in (("a", a), ("b", b))}


def values(runner: PipelineRunner, a: int, b: int, count: int = 1) -> list[list[int]]:
    return [sample.tolist() for sample in runner.run(fed(a, b, count), count).outputs[0].samples]


def holding(runner: PipelineRunner) -> list[str]:
    return [name for name, source in runner.sources.items() if source.has_data()]


def swallow(source: ExternalSource, run: Callable[[Any], None]) -> Callable[[Any], None]:
    """Discard the fed batch and return the previous one."""
    kept: list[Any] = []

    def sabotaged(workspace: Any) -> None:
        kept.append(source._queue.popleft())
        source._queue.append(kept[-2 if len(kept) > 1 else -1])
        run(workspace)

    return sabotaged


def leave(source: ExternalSource, run: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return the fed batch, and keep it for the next run, too."""

    def sabotaged(workspace: Any) -> None:
        source._queue.append(source._queue[0])
        run(workspace)

    return sabotaged


def skip(source: ExternalSource, run: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return other data than the fed batch."""

    def sabotaged(workspace: Any) -> None:
        workspace.outputs = [TensorListCPU([np.zeros(2, np.int32)] * workspace.batch_size)]

    return sabotaged


@pytest.mark.parametrize("sabotage", [swallow, leave, skip])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_source_that_gives_anything_else_is_found_out(pipeline: Pipeline, sabotage: Any, name: str) -> None:
    runner = PipelineRunner(pipeline)
    assert values(runner, 1, 10) == [[11, 11]]
    source = runner.sources[name]
    source.run = sabotage(source, source.run)  # type: ignore[method-assign]
    if sabotage is swallow:
        # In the first run, there is no older batch to return.
        assert values(runner, 2, 20) == [[22, 22]]
    with pytest.raises(MixUpError, match=f"'{name}' (returned|has data left)"):
        runner.run(fed(3, 30), 1)
    # The pipeline was rebuilt, with sources that work.
    assert values(runner, 4, 40, count=2) == [[44, 44]] * 2
    assert not holding(runner)


def test_a_source_that_does_not_let_go_is_replaced(pipeline: Pipeline) -> None:
    runner = PipelineRunner(pipeline)
    source = runner.sources["a"]
    source.drop = source.wake  # type: ignore[method-assign]
    source.feed(fed(7, 7)["a"])
    with pytest.raises(MixUpError):
        runner.run(fed(1, 2), 1)
    assert values(runner, 1, 2) == [[3, 3]]


def test_an_output_of_another_size_than_was_fed_is_found_out(pipeline: Pipeline) -> None:
    runner = PipelineRunner(pipeline)
    (add,) = [step.operator for step in pipeline.executor.plan.operators if step.node.name not in runner.sources]
    run = add.run

    def halved(workspace: Any) -> None:
        run(workspace)
        workspace.outputs = [TensorListCPU(list(workspace.outputs[0].samples)[:1])]

    add.run = halved  # type: ignore[method-assign]
    with pytest.raises(MixUpError, match="Output 0 has 1 samples where 2 were fed"):
        runner.run(fed(1, 2, count=2), 2)
    assert values(runner, 1, 2, count=2) == [[3, 3]] * 2


def test_a_batch_that_fails_leaves_nothing_behind(pipeline: Pipeline) -> None:
    runner = PipelineRunner(pipeline)
    wrong = fed(1, 2) | {"a": TensorListCPU([np.zeros(2, np.float32)])}
    for _ in range(3):
        # Source a refuses its batch before b takes its own.
        with pytest.raises(OperatorError):
            runner.run(wrong, 1)
        assert not holding(runner)
    assert values(runner, 3, 4) == [[7, 7]]


class Gone:
    """Watches a run; cancels all requests after the first operator has run."""

    def __init__(self) -> None:
        self._ran = 0

    def operator_ran(self, step: Any, seconds: float) -> None:
        self._ran += 1

    def cancelled(self) -> list[int]:
        return [0, 1] if self._ran else []


def test_a_batch_that_is_cancelled_leaves_nothing_behind(pipeline: Pipeline) -> None:
    runner = PipelineRunner(pipeline)
    for number in range(3):
        # When the run stops, source a has returned its batch, but b has not.
        assert runner.run(fed(number, 2, count=2), 2, Gone()).stopped
        assert not holding(runner)
    assert values(runner, 3, 4) == [[7, 7]]


def test_what_cannot_be_fed_leaves_nothing_behind(pipeline: Pipeline) -> None:
    runner = PipelineRunner(pipeline)
    with pytest.raises(KeyError):
        runner.run({"a": fed(1, 2)["a"]}, 1)
    assert values(runner, 3, 4) == [[7, 7]]
    assert not holding(runner)


def test_data_of_the_last_batch_is_not_given_again() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def repeating() -> Any:
        return fn.external_source(name="a", repeat_last=True)

    pipeline = repeating()
    runner = PipelineRunner(pipeline)
    runner.run(fed(1, 0), 1)
    assert not holding(runner)
    pipeline.close()
