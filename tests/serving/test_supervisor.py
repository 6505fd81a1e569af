"""Recovery: the processes of models in a real Triton, and Triton itself, are killed."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.serving import supervisor
from penstock.serving.control import ServerError
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import stopped_later

pytestmark = pytest.mark.exhaustive

CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: COUNT } ]
"""

TIMES = """
import os
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        if any((x < 0).any() for x in inputs):
            os.abort()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", FACTOR * x)]) for x in inputs]
"""


def write_model(repository: Path, name: str, factor: int = 1, count: int = 1) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(TIMES.replace("FACTOR", str(factor)))
    (folder.parent / "config.pbtxt").write_text(CONFIG.replace("COUNT", str(count)))


def infer(server: LocalServer, model: str, x: float = 1.0) -> float:
    """Return the model's answer; raise ServerError if the status is not 200. A negative ``x`` ends the model's process."""
    tensor = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [x]}
    connection = http.client.HTTPConnection(server.http_url, timeout=30)
    try:
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
        response = connection.getresponse()
        told = json.loads(response.read())
    finally:
        connection.close()
    if response.status != 200:
        raise ServerError(told["error"])
    value: float = told["outputs"][0]["data"][0]
    return value


def answers(server: LocalServer, model: str) -> float | None:
    try:
        return infer(server, model)
    except (OSError, ServerError):
        return None


def status(server: LocalServer, path: str, method: str = "GET") -> int:
    connection = http.client.HTTPConnection(server.http_url, timeout=30)
    try:
        connection.request(method, path, "{}" if method == "POST" else None)
        return connection.getresponse().status
    finally:
        connection.close()


def wait(condition: Callable[[], Any], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@contextmanager
def traffic(server: LocalServer, model: str) -> Iterator[None]:
    """Call a model continuously during the context; assert that each call is answered."""
    failures: list[str] = []
    calls, over = [0], threading.Event()

    def call() -> None:
        while not over.wait(0.01):
            calls[0] += 1
            try:
                infer(server, model)
            except (OSError, ServerError) as error:
                failures.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failures == []
    assert calls[0] > 10


def kill_stub(server: LocalServer, model: str) -> None:
    # Not counted: the process that completed the configuration. Processes of an unloaded or replaced model may still be running, too.
    stubs = [
        stub for stub in server.stubs() if stub.model_in(server.repositories[0]) == model and stub.instance != model
    ]
    os.kill(max(stubs, key=lambda stub: stub.started).pid, signal.SIGKILL)


class Explicit:
    """A server in the mode "explicit", with its supervisor's reports."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.reports: list[str] = []
        flags = ["--model-control-mode=explicit", "--load-model=steady", "--load-model", "pair"]
        settings = {"allow_model_upload": "true"}
        self.server = LocalServer(
            repository, model_host="stub", flags=flags, settings=settings, report=self.reports.append
        )


@pytest.fixture(scope="module")
def explicit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explicit]:
    repository = tmp_path_factory.mktemp("explicit")
    write_model(repository, "steady")
    write_model(repository, "pair", count=2)
    write_model(repository, "later", factor=3)
    write_model(repository, "edited", factor=2)
    made = Explicit(repository)
    with stopped_later(made.server):
        yield made


def test_only_what_is_asked_for_is_loaded(explicit: Explicit) -> None:
    states = {model.name: (model.ready, model.failed) for model in explicit.server.models()}
    assert states["steady"] == states["pair"] == (True, False)
    assert states["later"] == states["edited"] == (False, False)
    assert answers(explicit.server, "later") is None


def test_loading_and_unloading_stop_no_other_model(explicit: Explicit) -> None:
    server, pid = explicit.server, explicit.server.pid
    explicit.reports.clear()
    with traffic(server, "steady"):
        server.control.load("edited")
        assert infer(server, "edited") == 2
        write_model(explicit.repository, "edited", factor=4)
        server.control.load("edited")
        assert infer(server, "edited") == 4
        server.control.unload("edited")
        time.sleep(1.5)
        assert answers(server, "edited") is None
        assert status(server, "/v2/models/edited/ready") == 400
    assert server.pid == pid
    assert explicit.reports == []


def test_a_model_loaded_later_that_dies_is_loaded_again_alone(explicit: Explicit) -> None:
    server, pid = explicit.server, explicit.server.pid
    explicit.reports.clear()
    server.control.load("later")
    with traffic(server, "steady"):
        kill_stub(server, "later")
        # On a busy machine, the model may be ready again before its state is queried; in that case, there is a report.
        wait(lambda: explicit.reports or status(server, "/v2/models/later/ready") == 400)
        wait(lambda: answers(server, "later") == 3)
        wait(lambda: len(explicit.reports) == 2)
    assert server.pid == pid
    assert "later: its process" in explicit.reports[0]
    assert "was ended by SIGKILL; the model is loaded again now" in explicit.reports[0]
    assert "later serves again, after" in explicit.reports[1]
    assert status(server, "/v2/models/later/ready") == 200


def test_a_model_that_dies_before_the_supervisor_looks_is_loaded_again(
    explicit: Explicit, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = explicit.server
    server.control.unload("later")
    explicit.reports.clear()
    monkeypatch.setattr(supervisor, "_LIST_INTERVAL_SECONDS", 3.0)
    time.sleep(0.5)
    server.control.load("later")
    kill_stub(server, "later")
    wait(lambda: explicit.reports and "later serves again" in explicit.reports[-1])
    assert answers(server, "later") == 3


def test_one_of_two_instances_dies(explicit: Explicit) -> None:
    server = explicit.server
    explicit.reports.clear()
    with traffic(server, "steady"):
        before = set(server.stubs())
        kill_stub(server, "pair")
        wait(lambda: any("pair serves again" in line for line in explicit.reports))
        assert [answers(server, "pair") for _ in range(12)] == [1] * 12
    # The dead process had no request, so Triton ends the other one.
    old = {stub for stub in before if stub.instance.startswith("pair")}
    wait(lambda: not old & set(server.stubs()))


def test_a_model_of_a_clients_own_files_is_loaded_with_them_again(explicit: Explicit) -> None:
    server = explicit.server
    source = base64.b64encode(TIMES.replace("FACTOR", "7").encode()).decode()
    tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
    config = {
        "backend": "python",
        "max_batch_size": 4,
        "input": [{"name": "x", **tensor}],
        "output": [{"name": "y", **tensor}],
    }
    server.control.load("sent_1", {"config": json.dumps(config), "file:1/model.py": source})
    assert infer(server, "sent_1") == 7
    stub = next(stub for stub in server.stubs() if stub.instance.startswith("sent_1"))
    wait(lambda: stub in server._supervisor._models._stubs)  # type: ignore[union-attr]
    os.kill(stub.pid, signal.SIGKILL)
    wait(lambda: explicit.reports and "sent_1 serves again" in explicit.reports[-1])
    assert infer(server, "sent_1") == 7
    told = server.control.configuration("sent_1")
    assert told is not None
    assert told["max_batch_size"] == 4


def test_a_killed_server_comes_back_with_the_models_that_it_had(explicit: Explicit) -> None:
    server, pid = explicit.server, explicit.server.pid
    server.control.load("later")
    server.control.unload("pair")
    known = server._supervisor._models  # type: ignore[union-attr]
    wait(lambda: "later" in known.loaded.names and "pair" not in known.loaded.names)
    os.kill(pid, signal.SIGKILL)
    wait(lambda: explicit.reports and "Triton serves again" in explicit.reports[-1])
    assert server.pid != pid
    assert infer(server, "steady") == 1
    assert infer(server, "later") == 3
    assert answers(server, "pair") is None
    kill_stub(server, "steady")
    wait(lambda: "steady serves again" in explicit.reports[-1])


def test_a_request_that_ends_its_process_costs_that_model_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_SIBLING_DRAIN_SECONDS", 1.0)
    write_model(tmp_path, "steady")
    write_model(tmp_path, "pair", count=2)
    reports: list[str] = []
    # Without intervention, Triton would wait for so long, and be killed after 20 s.
    flags = ["--exit-timeout-secs=60"]
    with LocalServer(tmp_path, model_host="stub", flags=flags, report=reports.append) as server:
        before = {stub for stub in server.stubs() if stub.instance.startswith("pair")}
        assert len(before) == 2
        with traffic(server, "steady"):
            with pytest.raises(ServerError, match="not healthy"):
                infer(server, "pair", -1.0)
            wait(lambda: reports and "pair serves again" in reports[-1])
            assert [answers(server, "pair") for _ in range(12)] == [1] * 12
        assert "was ended by SIGABRT" in reports[0]
        # Triton waits for the lost request forever, and does not end the other process before; so the supervisor ends it.
        wait(lambda: not before & set(server.stubs()))
        began = time.monotonic()
    assert time.monotonic() - began < 18
    assert len(reports) == 2


def test_models_that_are_asked_for_and_not_there_are_an_error(tmp_path: Path) -> None:
    write_model(tmp_path, "steady")
    server = LocalServer(tmp_path, flags=["--model-control-mode=explicit", "--load-model=missing"])
    with pytest.raises(ServerError, match="1 of 1 models cannot be served:\n  missing: there is no such model"):
        server.start()


def test_models_come_and_go_with_their_files(tmp_path: Path) -> None:
    write_model(tmp_path, "steady")
    write_model(tmp_path, "edited")
    write_model(tmp_path, "removed")
    reports: list[str] = []
    flags = ["--model-control-mode=poll", "--repository-poll-secs=1"]
    with (
        stopped_later(LocalServer(tmp_path, model_host="stub", flags=flags, report=reports.append)) as server,
        traffic(server, "steady"),
    ):
        pid = server.pid
        # Clients that can load models can run code. So only the supervisor can load models, unless the mode is "explicit".
        assert status(server, "/v2/repository/models/removed/unload", "POST") == 403
        write_model(tmp_path, "edited", factor=5)
        write_model(tmp_path, "added", factor=6)
        for file in sorted((tmp_path / "removed").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (tmp_path / "removed").rmdir()
        wait(lambda: answers(server, "edited") == 5)
        wait(lambda: answers(server, "added") == 6)
        wait(lambda: answers(server, "removed") is None)
        assert reports == []
        kill_stub(server, "edited")
        wait(lambda: reports and "edited serves again" in reports[-1])
        assert infer(server, "edited") == 5
        assert server.pid == pid


def test_gives_up_on_a_server_that_keeps_dying(tmp_path: Path) -> None:
    write_model(tmp_path, "steady")
    reports: list[str] = []
    with LocalServer(tmp_path, model_host="stub", restarts=1, report=reports.append) as server:
        first = server.pid
        os.kill(first, signal.SIGKILL)
        wait(lambda: "Triton serves again" in reports[-1] if reports else False)
        assert not server.wait(timeout=0.01)
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(
            ServerError, match="was ended by SIGKILL and is not started again: 1 times in a row are enough"
        ):
            server.wait(timeout=30)
    assert list(Path("/dev/shm").glob(f"{server.shared_memory}*")) == []
