"""Cancelled requests on a real Triton are not computed, and other requests are not affected."""

from __future__ import annotations

import queue
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from penstock.serving import cancellation
from penstock.serving.cancellation import CancellationWatch
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import PATIENCE_SECONDS, add_model, stopped_later, until

pytestmark = pytest.mark.exhaustive

# Three operators, each of which records the samples that reach it and adds 1000. For the numbers 101, 103 and 107, which do not occur in
# trial runs, the first operator waits until the test lets it continue, and then for as long as the server may take to notice a
# cancellation.
SLOW = """
import os, time
from penstock import fn, pipeline_def, types

def slow(step):
    def run(samples):
        with open({trace!r}, "a") as file:
            file.writelines(f"{{int(sample[0])}} {{step}}\\n" for sample in samples)
        if step == "first" and any(sample[0] in (101, 103, 107) for sample in samples):
            while not os.path.exists({gate!r}):
                time.sleep(0.01)
            time.sleep(1)
        return [sample + 1000 for sample in samples]
    return run

@pipeline_def(batch_size=8)
def define():
    x = fn.external_source(name="x", dtype=types.INT32, ndim=1)
    for step in ("first", "second", "third"):
        x = fn.python_function(x, function=slow(step), batch_processing=True)
    late = fn.external_source(name="late", dtype=types.INT32, ndim=1)
    return fn.copy(x, name="y"), fn.copy(late, name="z")
"""
CONFIG = """backend: "penstock"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "late" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "z" data_type: TYPE_INT32 dims: [ 1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 300000 }
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Path:
    """Return the file in which operators record the samples that reach them."""
    return tmp_path_factory.mktemp("trace") / "steps"


def gate_of(trace: Path) -> Path:
    """Return the file that lets the first operator continue."""
    return trace.with_name("gate")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, trace: Path, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    add_model(repository, "slow", CONFIG, SLOW.format(trace=str(trace), gate=str(gate_of(trace))))
    with stopped_later(LocalServer(repository, model_host=model_host)) as running:
        yield running


class Call:
    """A request in flight; the number that it contains identifies it."""

    def __init__(self, client: Any, number: int) -> None:
        tensors = []
        for name, value in (("x", number), ("late", -number)):
            tensors.append(tritonclient.grpc.InferInput(name, [1, 1], "INT32"))
            tensors[-1].set_data_from_numpy(np.array([[value]], np.int32))
        self._answers: queue.Queue[Any] = queue.Queue()
        self._call = client.async_infer("slow", tensors, lambda result, error: self._answers.put(error or result))

    def cancel(self) -> None:
        self._call.cancel()

    def answer(self) -> list[int]:
        """Return both outputs; raise the error if there is one."""
        answer = self._answers.get(timeout=PATIENCE_SECONDS)
        if isinstance(answer, Exception):
            raise answer
        return [int(answer.as_numpy(name)[0, 0]) for name in ("y", "z")]


@pytest.fixture
def ask(server: LocalServer, trace: Path) -> Iterator[Callable[[int], Call]]:
    trace.write_text("")
    gate_of(trace).unlink(missing_ok=True)
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        yield lambda number: Call(client, number)


def failed(server: LocalServer) -> int:
    """Return the number of cancelled requests in the model's metrics."""
    with urllib.request.urlopen(server.metrics_url) as answer:
        lines = answer.read().decode().splitlines()
    counted = [
        line for line in lines if line.startswith("penstock_failed_requests_total") and 'kind="cancelled"' in line
    ]
    return int(float(counted[0].split()[-1])) if counted else 0


def test_a_run_that_nobody_waits_for_any_more_stops(
    server: LocalServer, ask: Callable[[int], Call], trace: Path
) -> None:
    before = failed(server)
    call = ask(101)
    until(lambda: "101 first" in trace.read_text())
    call.cancel()
    gate_of(trace).touch()
    with pytest.raises(InferenceServerException, match=r"(?i)cancel"):
        call.answer()
    # The second input of the cancelled request, which had not been used when it was cancelled, must not be used for this request.
    assert ask(2).answer() == [3002, -2]
    assert "101 third" not in trace.read_text()
    until(lambda: failed(server) == before + 1)


def test_a_cancelled_request_leaves_the_others_of_its_batch_alone(
    server: LocalServer, ask: Callable[[int], Call], trace: Path
) -> None:
    before = failed(server)
    calls = {number: ask(number) for number in (103, 4, 5)}
    until(lambda: len(trace.read_text().splitlines()) >= 3)
    assert sorted(trace.read_text().splitlines()[:3]) == ["103 first", "4 first", "5 first"]  # one batch
    calls[4].cancel()
    gate_of(trace).touch()
    assert calls[103].answer() == [3103, -103]
    assert calls[5].answer() == [3005, -5]
    until(lambda: failed(server) == before + 1)
    assert ask(6).answer() == [3006, -6]


def test_what_is_cancelled_while_it_waits_is_not_run(
    server: LocalServer, ask: Callable[[int], Call], trace: Path
) -> None:
    running = ask(107)
    until(lambda: "107 first" in trace.read_text())
    waiting = ask(8)
    time.sleep(0.3)
    waiting.cancel()
    gate_of(trace).touch()
    assert running.answer() == [3107, -107]
    assert ask(9).answer() == [3009, -9]
    assert "8 " not in trace.read_text()


class Clock:
    """A clock that the test advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Costly:
    """A request for which a poll for cancellation takes a fixed number of seconds."""

    def __init__(self, clock: Clock) -> None:
        self.seconds, self.asked, self._clock = 0.001, 0, clock

    def is_cancelled(self) -> bool:
        self.asked += 1
        self._clock.now += self.seconds
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(cancellation, "perf_counter", made)
    return made


def test_asking_takes_little_of_the_time(clock: Clock) -> None:
    watch, request = CancellationWatch(), Costly(clock)
    assert watch.among([request]) == {0}
    while clock.now < 0.2:
        watch.among([request])
        clock.now += 0.0001
    # Saved time pays for the first five polls; after that, polls may take 2% of the time.
    assert request.asked in (9, 10)
    clock.now += 0.3
    assert watch.among([request]) == {0}


def test_who_was_held_up_asks_again_soon(clock: Clock) -> None:
    watch, request = CancellationWatch(), Costly(clock)
    request.seconds = 2.0
    for _ in range(3):
        assert watch.among([request]) == {0}
