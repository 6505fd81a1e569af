"""Executions of a model that are begun before the previous one is finished, without Triton."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.operators.generic.copy import Copy
from penstock.runtime import memory
from penstock.schema.early_start import EarlyStart
from penstock.schema.workspace import Workspace
from penstock.serving.pipeline_runner import BegunBatch, PipelineRunner
from penstock.serving.refusals import Kind, Refusal
from penstock.serving.served_model import ServedModel
from penstock.tensors import TensorListCPU

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model
from test_served_model import Asked, entry

DOUBLED = """
@pipeline_def(batch_size=4)
def doubled():
    return fn.copy(fn.external_source(name="x", dtype=types.INT32, ndim=1)) * 2
"""
CONFIG = {
    "name": "doubled",
    "max_batch_size": 4,
    "input": [entry("x", "TYPE_INT32", -1)],
    "output": [entry("y", "TYPE_INT32", -1)],
}
REFUSED_AT_BEGIN, REFUSED_AT_END = 13, 17


@pytest.fixture
def early_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `copy` an operator whose work continues after it was begun, and which fails for two numbers."""
    run = Copy.run

    def refuse(workspace: Workspace, number: int) -> None:
        if any(sample.size and sample.flat[0] == number for sample in workspace.inputs[0].samples):
            raise ValueError("a bad number")

    def begin(self: Copy, workspace: Workspace) -> EarlyStart:
        refuse(workspace, REFUSED_AT_BEGIN)
        workspace.begun = True
        return EarlyStart()

    def complete(self: Copy, workspace: Workspace) -> None:
        if workspace.begun is None:
            begin(self, workspace)
        refuse(workspace, REFUSED_AT_END)
        run(self, workspace)

    monkeypatch.setattr(Copy, "begins_early", True)
    monkeypatch.setattr(Copy, "begin", begin, raising=False)
    monkeypatch.setattr(Copy, "run", complete)


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., ServedModel]]:
    loaded = []

    def loading(**parameters: str) -> ServedModel:
        add_model(tmp_path, "doubled", "", HEADER + DOUBLED)
        parameters = {"overlap_batches": "true"} | parameters
        config = CONFIG | {"parameters": {name: {"string_value": text} for name, text in parameters.items()}}
        loaded.append(ServedModel.load(tmp_path / "doubled" / "1", config, None))
        return loaded[-1]

    yield loading
    for model in loaded:
        model.close()


def asked(*numbers: int, width: int = 1) -> list[Asked]:
    return [Asked({"x": np.full((1, width), number, np.int32)}, wanted=("y",)) for number in numbers]


def values(answers: list[Any]) -> list[Any]:
    return [answer.kind if isinstance(answer, Refusal) else int(answer.tensors["y"].ravel()[0]) for answer in answers]


def finished_in_turn(model: ServedModel, *batches: list[Asked]) -> list[list[Any]]:
    """Begin each batch before the previous one is finished; return the answers."""
    found, before = [], model.begin(batches[0])
    for batch in batches[1:]:
        following = model.begin(batch)
        found.append(values(model.finish(before)))
        before = following
    return [*found, values(model.finish(before))]


def test_answers_are_those_of_their_batch(load: Any, early_copy: None) -> None:
    model = load()
    assert model.overlaps
    assert finished_in_turn(model, *(asked(n, n + 1) for n in range(0, 12, 2))) == [
        [2 * n, 2 * n + 2] for n in range(0, 12, 2)
    ]


@pytest.mark.usefixtures("with_gpu")
def test_results_of_a_gpu_are_those_of_their_batch() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def doubled_on_gpu() -> Any:
        return fn.external_source(name="x", dtype=types.INT32, ndim=1).gpu() * 2

    pipeline = doubled_on_gpu()
    runner = PipelineRunner(pipeline)
    assert pipeline.executor.leaves_work

    def begun(number: int) -> BegunBatch:
        return runner.begin({"x": TensorListCPU([np.full(3, number, np.int32)] * 2)}, 2)

    before = begun(0)
    for number in range(1, 6):
        following = begun(number)
        # On another thread, as in a server.
        with ThreadPoolExecutor(1) as thread:
            result = thread.submit(runner.complete, before).result()
        assert [np.array(sample).tolist() for sample in result.outputs[0].as_cpu().samples] == [
            [2 * number - 2] * 3
        ] * 2
        before = following
    runner.complete(before)
    pipeline.close()


def test_nothing_is_begun_where_nothing_goes_on(load: Any) -> None:
    assert not load().overlaps


def test_functions_of_users_are_called_by_one_thread(
    load: Any, early_copy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Copy, "lends_inputs", True)
    assert not load().overlaps


def test_a_setting_forbids_it(load: Any, early_copy: None) -> None:
    assert not load(overlap_batches="false").overlaps


@pytest.mark.parametrize("number", [REFUSED_AT_BEGIN, REFUSED_AT_END])
def test_one_request_fails_in_the_middle_of_three_batches(load: Any, early_copy: None, number: int) -> None:
    assert finished_in_turn(load(), asked(1, 2), asked(3, number, 4), asked(5)) == [
        [2, 4],
        [6, Kind.OPERATOR, 8],
        [10],
    ]


def test_an_error_while_waiting_is_the_runs(load: Any, early_copy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Copy, workspace: Workspace) -> None:
        raise RuntimeError("an unnamed error")

    monkeypatch.setattr(Copy, "await_begun", fail)
    model = load()
    (refusal,), good = (model.finish(model.begin(asked(number))) for number in (REFUSED_AT_END, 2))
    assert "a bad number" in refusal.message
    assert values(good) == [4]


def test_cancelled_requests_leave_others_alone(load: Any, early_copy: None) -> None:
    model = load()
    gone, staying = asked(1), asked(2, 3)
    first, second = model.begin(gone), model.begin(staying)
    gone[0].cancelled = True
    # Cancellations are only detected when the next operator runs.
    assert values(model.finish(first)) == [Kind.CANCELLED]
    assert values(model.finish(second)) == [4, 6]


def test_a_batch_is_run_again_if_it_needs_the_budget(
    load: Any, early_copy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load()
    monkeypatch.setattr(memory, "SMALL_BATCH_BYTES", 1000)
    monkeypatch.setattr(memory, "SCRATCH_BYTES_OF_THREAD", 0)
    wide = asked(7, width=1000)
    assert finished_in_turn(model, asked(1), wide, asked(2)) == [[2], [14], [4]]
    # The following batches are not begun early, so they may take memory from the budget without holding up the previous batch.
    execution = model.begin(asked(3))
    assert execution.begun is None
    assert values(model.finish(execution)) == [6]


def test_a_batch_is_run_again_if_the_pipeline_was_rebuilt(load: Any, early_copy: None) -> None:
    model = load()
    first, second = model.begin(asked(1)), model.begin(asked(2))
    step = next(step for step in model._pipeline.executor.plan.waiting if step.node.schema.name != "Copy")
    run = step.operator.run

    def doubling(workspace: Workspace) -> None:
        run(workspace)
        workspace.outputs = [type(workspace.outputs[0]).of_samples(list(workspace.outputs[0].samples) * 2)]

    step.operator.run = doubling
    (answer,) = model.finish(first)
    assert isinstance(answer, Refusal)
    assert values(model.finish(second)) == [4]
    assert finished_in_turn(model, asked(3), asked(4)) == [[6], [8]]
