"""Stopping a server under load: requests in flight are answered, later ones are refused, and none is cut off."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from penstock.serving.admission import Admission
from penstock.serving.control import Control
from penstock.serving.draining import ReadinessSwitch, drain
from penstock.serving.lifeline import Lifeline
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, until

NAP_SECONDS = 0.5
TIRED = 7.5
"""The value that makes the model sleep for a request; it does not occur in trial runs, so that loading the model does not sleep."""
CLOSED = 0
"""Stands for a status: the server has closed the connection."""

TENSORS = """
max_batch_size: 1
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
CONFIG = (
    TENSORS
    + """
backend: "penstock"
instance_group [ { kind: KIND_CPU count: 2 } ]
parameters { key: "allowed_modules" value { string_value: "time" } }
"""
)
TRUSTING = {"trust_repository": "true"}
SLOW = (
    HEADER
    + f"""
import time

def nap(x):
    if x[0] == {TIRED}:
        with open("TRACE", "a") as file:
            file.write(".")
        time.sleep({NAP_SECONDS})
    return x

@autoserialize
@pipeline_def(batch_size=1, num_threads=1, device_id=None, exec_dynamic=True)
def slow():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    for _ in range(NAPS):
        x = fn.python_function(x, function=nap, num_outputs=1)
    return x
"""
)
ENSEMBLE = (
    TENSORS
    + """
platform: "ensemble"
ensemble_scheduling { step [
  { model_name: "slow" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "between" } },
  { model_name: "slow" model_version: -1 input_map { key: "x" value: "between" } output_map { key: "y" value: "y" } }
] }
"""
)


def write_slow(folder: Path, naps: int = 1) -> Path:
    """Write a repository of one model, and return it."""
    source = SLOW.replace("NAPS", str(naps)).replace("TRACE", str(folder / "trace"))
    add_model(folder / "models", "slow", CONFIG, source)
    return folder / "models"


def await_naps(folder: Path, count: int) -> None:
    """Wait until the model has begun to sleep ``count`` times."""
    trace = folder / "trace"
    until(lambda: trace.exists() and len(trace.read_text()) >= count)


@dataclass
class Answer:
    """The outcome of a request, and when it was sent and answered."""

    sent: float
    ended: float
    status: int
    text: str


class HttpClient:
    """A client with one connection, which stays open."""

    def __init__(self, server: LocalServer, model: str = "slow") -> None:
        self._connection = http.client.HTTPConnection(server.http_url, timeout=60)
        self._connection.connect()
        self._model = model

    def ask(self) -> Answer:
        sent = time.monotonic()
        tensor = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [TIRED]}
        self._connection.request("POST", f"/v2/models/{self._model}/infer", json.dumps({"inputs": [tensor]}))
        response = self._connection.getresponse()
        return Answer(sent, time.monotonic(), response.status, response.read().decode())

    def close(self) -> None:
        self._connection.close()

    def readiness(self) -> int:
        self._connection.request("GET", "/v2/health/ready")
        response = self._connection.getresponse()
        response.read()
        return response.status


class GrpcClient:
    """A client like :class:`HttpClient`, but over gRPC; it reports the HTTP status codes that correspond to those of gRPC."""

    def __init__(self, server: LocalServer) -> None:
        self._client = tritonclient.grpc.InferenceServerClient(server.grpc_url)

    def ask(self) -> Answer:
        sent = time.monotonic()
        tensor = tritonclient.grpc.InferInput("x", [1, 1], "FP32")
        tensor.set_data_from_numpy(np.full((1, 1), TIRED, np.float32))
        try:
            self._client.infer("slow", [tensor])
        except InferenceServerException as error:
            if "is stopping" not in str(error):
                raise ConnectionError(str(error)) from error
            return Answer(
                sent, time.monotonic(), {"StatusCode.UNAVAILABLE": 503}.get(str(error.status()), 400), str(error)
            )
        return Answer(sent, time.monotonic(), 200, "")

    def close(self) -> None:
        self._client.close()


Client = HttpClient | GrpcClient


@contextmanager
def stopping(server: LocalServer) -> Iterator[float]:
    """Stop a server during the context; yield the time at which stopping began."""
    thread = threading.Thread(target=server.stop)
    began = time.monotonic()
    thread.start()
    try:
        yield began
    finally:
        thread.join()


def ask_once(client: Client) -> Answer:
    with contextlib.closing(client):
        return client.ask()


class Asking(threading.Thread):
    """Sends one request after the other until the connection is closed, which is recorded as the last answer."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.answers: list[Answer] = []
        self._client = client
        self.start()

    def run(self) -> None:
        with contextlib.closing(self._client):
            while not self.answers or self.answers[-1].status != CLOSED:
                sent = time.monotonic()
                try:
                    self.answers.append(self._client.ask())
                except (OSError, http.client.HTTPException) as error:
                    self.answers.append(Answer(sent, time.monotonic(), CLOSED, repr(error)))
                if self.answers[-1].status != 200:
                    time.sleep(0.05)


def answers_of(asking: list[Asking]) -> list[Answer]:
    """Wait until the server has closed all connections, and return all answers."""
    for one in asking:
        one.join()
    return [answer for one in asking for answer in one.answers]


@pytest.mark.exhaustive
@pytest.mark.parametrize("protocol", [HttpClient, GrpcClient])
def test_requests_in_flight_are_answered_and_later_ones_refused_as_unavailable(tmp_path: Path, protocol: type) -> None:
    repository = write_slow(tmp_path)
    # Two instances, so that half of the requests are queued. If the server waited for clients that keep connections open, it would
    # take a minute to end, which is the exit timeout.
    with (
        LocalServer(repository, model_host="native", settings=TRUSTING, flags=["--exit-timeout-secs=60"]) as server,
        contextlib.closing(HttpClient(server)) as health,
    ):
        assert health.readiness() == 200
        asking = [Asking(protocol(server)) for _ in range(6)]
        until(lambda: all(one.answers for one in asking))
        with stopping(server) as began:
            until(lambda: health.readiness() != 200)
        ended = time.monotonic()
        found = answers_of(asking)
    assert {answer.status for answer in found if answer.sent < began} == {200}
    refused = [answer for answer in found if answer.status not in (200, CLOSED)]
    assert {answer.status for answer in refused} == {503}
    assert {"is stopping and accepts no new requests" in answer.text for answer in refused} == {True}
    first = min(answer.ended for answer in refused)
    assert {answer.status for answer in found if answer.sent > first} <= {503, CLOSED}
    assert ended - began < 45


@pytest.mark.exhaustive
def test_requests_that_take_longer_than_the_timeout_are_refused(tmp_path: Path) -> None:
    repository = write_slow(tmp_path, naps=16)
    with (
        LocalServer(repository, model_host="native", settings=TRUSTING, flags=["--exit-timeout-secs=1"]) as server,
        ThreadPoolExecutor(4) as threads,
    ):
        futures = [threads.submit(ask_once, HttpClient(server)) for _ in range(4)]
        await_naps(tmp_path, 2)
        server.stop()
        answers = [future.result() for future in futures]
    assert {answer.status for answer in answers} == {503}
    assert {"the server is stopping" in answer.text for answer in answers} == {True}


@pytest.mark.exhaustive
@pytest.mark.parametrize("host", ["native", "stub"])
def test_ensembles_in_flight_are_answered(tmp_path: Path, host: str) -> None:
    repository = write_slow(tmp_path)
    (repository / "twice" / "1").mkdir(parents=True)
    (repository / "twice" / "config.pbtxt").write_text(ENSEMBLE)
    flags = ["--exit-timeout-secs=60"]
    with (
        LocalServer(repository, model_host=host, settings=TRUSTING, flags=flags) as server,
        ThreadPoolExecutor(4) as threads,
    ):
        futures = [threads.submit(ask_once, HttpClient(server, "twice")) for _ in range(4)]
        await_naps(tmp_path, 1)
        server.stop()
        answers = [future.result() for future in futures]
    assert [answer.status for answer in answers] == [200] * 4, answers


@pytest.mark.exhaustive
def test_a_server_with_models_in_stubs_answers_what_is_in_flight_and_takes_nothing_new(tmp_path: Path) -> None:
    flags = ["--exit-timeout-secs=60"]
    with LocalServer(write_slow(tmp_path), model_host="stub", settings=TRUSTING, flags=flags) as server:
        asking = [Asking(HttpClient(server)) for _ in range(4)]
        until(lambda: all(one.answers for one in asking))
        with stopping(server) as began:
            pass
        found = answers_of(asking)
    assert {answer.status for answer in found if answer.sent < began} == {200}
    first = min(answer.ended for answer in found if answer.status != 200)
    assert {answer.status for answer in found if answer.sent > first} <= {404, CLOSED}, found


class Silent:
    """A server that accepts connections, but never answers."""

    def __init__(self, address: str, folder: Path) -> None:
        self.control = Control(address, {})
        self.lifeline = Lifeline()
        self.readiness = ReadinessSwitch(folder)
        self.running = True

    def queued_requests(self) -> dict[str, int]:
        return {}

    def waits_for_the_dead(self) -> bool:
        return False


def test_a_server_that_does_not_answer_is_drained_in_its_exit_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = Silent(f"127.0.0.1:{listener.getsockname()[1]}", tmp_path)
        began = time.monotonic()
        drain(silent, exit_timeout=0.5, hosted=())
        assert time.monotonic() - began < 10
    silent.lifeline.close()


# -- which requests are admitted ---------------------------------------------------------------------------------------


def drained_in_background(admission: Admission, queued: dict[str, int], timeout: float) -> Callable[[], bool]:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(admission.drain(queued, timeout)))
    thread.start()
    while admission._queued is None:
        time.sleep(0.001)

    def result() -> bool:
        thread.join()
        return results[0]

    return result


def test_as_many_requests_are_admitted_as_were_queued() -> None:
    admission = Admission()
    with admission.execution("a", 3) as admitted:
        assert admitted == 3
    result = drained_in_background(admission, {"a": 5}, timeout=30)
    with admission.execution("a", 4) as admitted:
        assert admitted == 4
    with admission.execution("b", 1) as admitted:
        assert admitted == 0
    with admission.execution("a", 4) as admitted:
        assert admitted == 1
    assert result()
    with admission.execution("a", 1) as admitted:
        assert admitted == 0
    assert not admission.expired.is_set()


def test_queued_requests_that_never_come_are_not_waited_for() -> None:
    admission = Admission()
    began = time.monotonic()
    assert admission.drain({"a": 5}, timeout=30)
    assert time.monotonic() - began < 15


def test_draining_ends_at_its_timeout() -> None:
    admission = Admission()
    with admission.execution("a", 1):
        assert not admission.drain({}, timeout=0.2)
    assert admission.expired.is_set()
