"""Stopping a server under load: what is in flight is answered, what comes later is refused, and nothing is cut off."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from penstock.serving.admission import Admission
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model

NAP_SECONDS = 1.0
CLOSED = 0
"""In place of a status: the server has closed the connection."""

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


def write_slow(repository: Path, naps: int = 1) -> None:
    add_model(repository, "slow", CONFIG, SLOW.replace("NAPS", str(naps)))


@dataclass
class Answer:
    """What became of a request, and when it was sent."""

    sent: float
    status: int
    text: str


class HttpClient:
    """A client with one connection, which is open all the while."""

    def __init__(self, server: LocalServer, model: str = "slow") -> None:
        self._connection = http.client.HTTPConnection(server.http_url, timeout=60)
        self._connection.connect()
        self._model = model

    def ask(self) -> Answer:
        sent = time.monotonic()
        tensor = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [3.0]}
        self._connection.request("POST", f"/v2/models/{self._model}/infer", json.dumps({"inputs": [tensor]}))
        response = self._connection.getresponse()
        return Answer(sent, response.status, response.read().decode())

    def close(self) -> None:
        self._connection.close()

    def readiness(self) -> int:
        self._connection.request("GET", "/v2/health/ready")
        response = self._connection.getresponse()
        response.read()
        return response.status


class GrpcClient:
    """The same over gRPC, with the statuses of HTTP."""

    def __init__(self, server: LocalServer) -> None:
        self._client = tritonclient.grpc.InferenceServerClient(server.grpc_url)

    def ask(self) -> Answer:
        sent = time.monotonic()
        tensor = tritonclient.grpc.InferInput("x", [1, 1], "FP32")
        tensor.set_data_from_numpy(np.full((1, 1), 3, np.float32))
        try:
            self._client.infer("slow", [tensor])
        except InferenceServerException as error:
            if "is stopping" not in str(error):
                raise ConnectionError(str(error)) from error
            return Answer(sent, {"StatusCode.UNAVAILABLE": 503}.get(str(error.status()), 400), str(error))
        return Answer(sent, 200, "")

    def close(self) -> None:
        self._client.close()


Client = HttpClient | GrpcClient


@contextmanager
def stopping(server: LocalServer) -> Iterator[float]:
    """A server that is being stopped; yields when that began."""
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


def ask_until_closed(client: Client) -> list[Answer]:
    """Answers to requests, one after the other, until the connection is closed; that is the last answer."""
    answers: list[Answer] = []
    with contextlib.closing(client):
        while True:
            sent = time.monotonic()
            try:
                answers.append(client.ask())
            except (OSError, http.client.HTTPException) as error:
                return [*answers, Answer(sent, CLOSED, repr(error))]
            if answers[-1].status != 200:
                time.sleep(0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("protocol", [HttpClient, GrpcClient])
def test_requests_in_flight_are_answered_and_later_ones_refused_as_unavailable(tmp_path: Path, protocol: type) -> None:
    write_slow(tmp_path)
    # Two instances, so that half of the requests are queued.
    clients = 6
    with (
        LocalServer(tmp_path, model_host="native", settings=TRUSTING) as server,
        ThreadPoolExecutor(clients) as threads,
        contextlib.closing(HttpClient(server)) as health,
    ):
        assert health.readiness() == 200
        answers: list[Future[list[Answer]]] = [
            threads.submit(ask_until_closed, protocol(server)) for _ in range(clients)
        ]
        time.sleep(2.5 * NAP_SECONDS)
        with stopping(server) as began:
            time.sleep(0.2)
            assert health.readiness() != 200
        ended = time.monotonic()
        found = [answer for future in answers for answer in future.result()]
    before = [answer for answer in found if answer.sent < began]
    assert len(before) >= clients
    assert {answer.status for answer in before} == {200}
    after = [answer for answer in found if answer.sent > began + 0.2 and answer.status != CLOSED]
    assert after != []
    assert {answer.status for answer in after} == {503}
    assert {"is stopping and takes no new requests" in answer.text for answer in after} == {True}
    # It does not wait for the timeout, though clients hold connections open.
    assert ended - began < 9


@pytest.mark.exhaustive
def test_requests_that_take_longer_than_the_timeout_are_refused(tmp_path: Path) -> None:
    write_slow(tmp_path, naps=8)
    with (
        LocalServer(tmp_path, model_host="native", settings=TRUSTING, flags=["--exit-timeout-secs=1"]) as server,
        ThreadPoolExecutor(4) as threads,
    ):
        futures = [threads.submit(ask_once, HttpClient(server)) for _ in range(4)]
        time.sleep(0.5)
        server.stop()
        answers = [future.result() for future in futures]
    assert {answer.status for answer in answers} == {503}
    assert {"the server is stopping" in answer.text for answer in answers} == {True}


@pytest.mark.exhaustive
@pytest.mark.parametrize("host", ["native", "stub"])
def test_ensembles_in_flight_are_answered(tmp_path: Path, host: str) -> None:
    write_slow(tmp_path)
    (tmp_path / "twice" / "1").mkdir(parents=True)
    (tmp_path / "twice" / "config.pbtxt").write_text(ENSEMBLE)
    with LocalServer(tmp_path, model_host=host, settings=TRUSTING) as server, ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(ask_once, HttpClient(server, "twice")) for _ in range(4)]
        time.sleep(0.5 * NAP_SECONDS)
        server.stop()
        answers = [future.result() for future in futures]
    assert [answer.status for answer in answers] == [200] * 4, answers


@pytest.mark.exhaustive
def test_a_server_with_models_in_stubs_answers_what_is_in_flight_and_takes_nothing_new(tmp_path: Path) -> None:
    write_slow(tmp_path)
    with LocalServer(tmp_path, model_host="stub", settings=TRUSTING) as server, ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(ask_until_closed, HttpClient(server)) for _ in range(4)]
        time.sleep(1.5 * NAP_SECONDS)
        with stopping(server) as began:
            pass
        found = [answer for future in futures for answer in future.result()]
    assert {answer.status for answer in found if answer.sent < began} == {200}
    assert {answer.status for answer in found if answer.sent > began + 0.5} <= {404, CLOSED}, found


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
