"""An instance begins a batch while the previous one is computed: this changes no answers, no failures, and not the orderly end."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, PATIENCE_SECONDS, add_model, stopped_later, until

# Each request is a batch. A number divisible by 13 makes the batch fail when it is begun; a number divisible by 17, when it is completed.
# Numbers below 100 occur in trial runs, for which the server generates data.
CONFIG = """backend: "penstock"
max_batch_size: 1
dynamic_batching { }
parameters { key: "overlap_batches" value { string_value: "true" } }
"""
MODEL = (
    HEADER
    + """
import time
from pathlib import Path

from penstock.operators.generic.copy import Copy
from penstock.schema.early_start import EarlyStart

GATES = Path({gates!r})


def note(what, workspace):
    with (GATES / "log").open("a") as log:
        log.write(f"{{what}} {{int(workspace.inputs[0].samples[0][0])}}\\n")


def refuse_multiples(factor, workspace):
    number = int(workspace.inputs[0].samples[0][0])
    if number >= 100 and number % factor == 0:
        raise ValueError(f"{{number}} is divisible by {{factor}}")


def begin(self, workspace):
    note("begin", workspace)
    refuse_multiples(13, workspace)
    workspace.begun = True
    return EarlyStart()


def await_begun(self, workspace):
    number = int(workspace.inputs[0].samples[0][0])
    while number >= 100 and not (GATES / str(number)).exists():
        time.sleep(0.002)


def run(self, workspace):
    note("run", workspace)
    refuse_multiples(17, workspace)
    workspace.outputs = list(workspace.inputs)


# Passes a number on once its gate is open, a file with its name. The server reads this file several times.
Copy.begins_early, Copy.begin, Copy.await_begun, Copy.run = True, begin, await_begun, run


@autoserialize
@pipeline_def(batch_size=1)
def gated():
    return fn.copy(fn.external_source(name="x", dtype=types.INT32, ndim=1)) + 0
"""
)


class Gates:
    """The model's gates, which are files that let the batch of a number continue, and a log of what the model did with each number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = (number for number in count(100) if number % 13 and number % 17)

    def open(self, *numbers: int) -> None:
        for number in numbers:
            (self.folder / str(number)).touch()

    def log(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []


class Call:
    """A request in flight."""

    def __init__(self, client: Any, number: int) -> None:
        self.number = number
        tensor = tritonclient.grpc.InferInput("x", [1, 1], "INT32")
        tensor.set_data_from_numpy(np.array([[number]], np.int32))
        self._answers: queue.Queue[Any] = queue.Queue()
        self._call = client.async_infer("gated", [tensor], lambda result, error: self._answers.put(error or result))

    def cancel(self) -> None:
        self._call.cancel()

    @property
    def is_answered(self) -> bool:
        return not self._answers.empty()

    def answer(self) -> int:
        """Return the number in the answer; raise the error if there is one."""
        answer = self._answers.get(timeout=PATIENCE_SECONDS)
        if isinstance(answer, Exception):
            raise answer
        (name,) = [output.name for output in answer.get_response().outputs]
        return int(answer.as_numpy(name)[0, 0])


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    return Gates(tmp_path_factory.mktemp("gates"))


def made_server(repository: Path, gates: Gates) -> LocalServer:
    add_model(repository, "gated", CONFIG, MODEL.format(gates=str(gates.folder)))
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    return LocalServer(repository, model_host="native", environment=sys.executable, flags=flags)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, gates: Gates) -> Iterator[LocalServer]:
    with stopped_later(made_server(tmp_path_factory.mktemp("served") / "repository", gates)) as running:
        yield running


@pytest.fixture
def ask(server: LocalServer) -> Iterator[Callable[[int], Call]]:
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        yield lambda number: Call(client, number)


Ask = Callable[[int], Call]


def two_in_flight(ask: Ask, gates: Gates, bad: int | None = None) -> tuple[Call, Call]:
    """Return two requests, in the order in which they were begun, that are in flight together and wait for their gates.

    Args:
        bad: the number of one of the requests, which makes it fail; by default, both succeed.
    """
    for _ in range(20):
        # If the instance is idle, Triton's thread computes the answer, and further requests wait. After the answer, these requests are
        # begun one right after the other, unless the machine is too busy; in that case, try again.
        before = ask(next(gates.numbers))
        until(lambda: f"begin {before.number}" in gates.log())  # noqa: B023
        both = [ask(next(gates.numbers)), ask(next(gates.numbers) if bad is None else bad)]
        gates.open(before.number)
        assert before.answer() == before.number
        begins = [f"begin {call.number}" for call in both]
        try:
            until(lambda: set(begins) <= set(gates.log()), seconds=2)  # noqa: B023
        except AssertionError:
            gates.open(*(call.number for call in both))
            for call in both:
                with contextlib.suppress(InferenceServerException):
                    call.answer()
            (gates.folder / "log").unlink()
            for call in both:
                (gates.folder / str(call.number)).unlink()
            continue
        assert not any(call.is_answered for call in both if call.number != bad)
        first, second = sorted(both, key=lambda call: gates.log().index(f"begin {call.number}"))
        return first, second
    raise AssertionError("no two batches were in flight at a time")


def test_a_batch_is_begun_while_the_previous_one_is_computed(ask: Ask, gates: Gates) -> None:
    first, second = two_in_flight(ask, gates)
    third = ask(next(gates.numbers))
    gates.open(second.number, third.number)
    # The answers of an instance are sent in order, and no third batch is begun before the first one is answered.
    assert not second.is_answered
    assert f"begin {third.number}" not in gates.log()
    gates.open(first.number)
    assert [call.answer() for call in (first, second, third)] == [first.number, second.number, third.number]
    order = [line for line in gates.log() if line.startswith("run")]
    assert order[-3:] == [f"run {call.number}" for call in (first, second, third)]


def test_the_last_batch_is_completed_although_none_follows(ask: Ask, gates: Gates) -> None:
    first, second = two_in_flight(ask, gates)
    gates.open(first.number)
    assert first.answer() == first.number
    assert not second.is_answered
    gates.open(second.number)
    assert second.answer() == second.number
    alone = ask(next(gates.numbers))
    gates.open(alone.number)
    assert alone.answer() == alone.number


@pytest.mark.parametrize("factor", [13, 17], ids=["when it is begun", "when it is complete"])
def test_a_batch_fails_between_two_others(ask: Ask, gates: Gates, factor: int) -> None:
    bad = 100 * factor
    both = two_in_flight(ask, gates, bad)
    third = ask(next(gates.numbers))
    gates.open(*(call.number for call in (*both, third)))
    for call in (*both, third):
        if call.number != bad:
            assert call.answer() == call.number
        else:
            with pytest.raises(InferenceServerException, match=f"{bad} is divisible by {factor}"):
                call.answer()


def test_a_client_leaves_while_two_batches_are_in_flight(server: LocalServer, ask: Ask, gates: Gates) -> None:
    before = server.pid
    first, second = two_in_flight(ask, gates)
    first.cancel()
    gates.open(first.number, second.number)
    with pytest.raises(InferenceServerException, match=r"(?i)cancel"):
        first.answer()
    assert second.answer() == second.number
    assert server.pid == before


def test_a_model_is_unloaded_with_two_batches_in_flight(server: LocalServer, ask: Ask, gates: Gates) -> None:
    first, second = two_in_flight(ask, gates)
    unloading = threading.Thread(target=server.control.unload, args=("gated",))
    unloading.start()
    unloading.join(0.5)
    gates.open(first.number, second.number)
    assert [first.answer(), second.answer()] == [first.number, second.number]
    unloading.join(PATIENCE_SECONDS)
    assert not unloading.is_alive()
    server.control.load("gated")
    again = ask(next(gates.numbers))
    gates.open(again.number)
    assert again.answer() == again.number


def test_a_server_stops_with_two_batches_in_flight(tmp_path: Path, gates: Gates) -> None:
    server = made_server(tmp_path / "repository", gates).start()
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        first, second = two_in_flight(lambda number: Call(client, number), gates)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        stopping.join(0.5)
        gates.open(first.number, second.number)
        assert [first.answer(), second.answer()] == [first.number, second.number]
        stopping.join(PATIENCE_SECONDS)
        assert not stopping.is_alive()
