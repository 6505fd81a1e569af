"""A crash in a model's separate process affects no other model; after a crash in the server's process, the server is restarted."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from penstock.serving.isolation import Isolation
from penstock.serving.server import LocalServer, ServerError

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, stopped_later

OURS = 'backend: "penstock"\n'
APART = OURS + 'parameters { key: "isolation" value { string_value: "process" } }\n'
WORKS = """
import ctypes, os, time

def work(x):
    if x[0] == 3: time.sleep(30)
    if x[0] == 11: ctypes.string_at(1)
    return x

@pipeline_def(batch_size=4)
def works():
    return fn.python_function(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), function=work, name="y")
"""
MODELS = {"hosted": OURS, "risky": OURS, "apart": APART}
SLOW, CRASH = 3, 11
PATIENCE = 40.0


def sample(number: float) -> tritonclient.grpc.InferInput:
    x = tritonclient.grpc.InferInput("x", [1, 1], "FP32")
    x.set_data_from_numpy(np.array([[number]], np.float32))
    return x


class Served:
    """A server, with its supervisor's reports and its models' answers."""

    def __init__(self, repository: Path) -> None:
        self.reports: list[str] = []
        flags = ["--model-control-mode=explicit", *(f"--load-model={model}" for model in MODELS)]
        self.server = LocalServer(
            repository, model_host="native", environment=sys.executable, flags=flags, report=self.reports.append
        )

    def ask(self, model: str, number: float) -> float:
        """Return a model's answer to a number."""
        with tritonclient.grpc.InferenceServerClient(self.server.grpc_url) as client:
            answer: float = client.infer(model, [sample(number)]).as_numpy("y")[0, 0]
            return answer

    def answers(self, model: str) -> bool:
        """Return whether a model gives the right answer."""
        with contextlib.suppress(InferenceServerException):
            return self.ask(model, 5) == 5
        return False


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    repository = tmp_path_factory.mktemp("repository")
    for name, config in MODELS.items():
        add_model(repository, name, config, HEADER + WORKS)
    add_model(repository, "later", OURS, HEADER + WORKS)
    made = Served(repository)
    with stopped_later(made.server):
        yield made


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_only_the_model_that_asks_for_it_has_a_process(served: Served) -> None:
    assert [stub.model_in(served.server.repositories[0]) for stub in served.server.stubs()] == ["apart"]
    assert all(map(served.answers, MODELS))


def test_a_process_that_crashes_concerns_its_model_alone(served: Served) -> None:
    before, failures, over = served.server.pid, [], threading.Event()

    def go_on_asking() -> None:
        while not over.wait(0.01):
            if not served.answers("hosted"):
                failures.append(time.monotonic())

    others = threading.Thread(target=go_on_asking)
    others.start()
    try:
        with pytest.raises(InferenceServerException):
            served.ask("apart", CRASH)
        wait_for(lambda: served.reports and "apart serves again" in served.reports[-1])
    finally:
        over.set()
        others.join()
    assert "was ended by SIGSEGV; the model is loaded again now" in served.reports[0]
    assert served.answers("apart")
    assert failures == []
    assert served.server.pid == before


def test_a_crash_in_the_server_costs_the_requests_in_flight_and_a_moment(served: Served) -> None:
    before = served.server.pid
    served.reports.clear()
    failures: list[InferenceServerException] = []
    with tritonclient.grpc.InferenceServerClient(served.server.grpc_url) as client:
        told = threading.Event()

        def take(result: Any, error: InferenceServerException | None) -> None:
            if error is not None:
                failures.append(error)
            told.set()

        client.async_infer("hosted", [sample(SLOW)], take)
        wait_for(lambda: running(served.server, "hosted"))
        with pytest.raises(InferenceServerException, match="UNAVAILABLE"):
            served.ask("risky", CRASH)
        assert told.wait(PATIENCE)
    assert [error.status() for error in failures] == ["StatusCode.UNAVAILABLE"]
    wait_for(lambda: served.reports and "Triton serves again" in served.reports[-1])
    assert "started again now" in served.reports[0]
    assert served.server.pid != before
    assert all(map(served.answers, MODELS))


def running(server: LocalServer, model: str) -> bool:
    """Return whether the queue of a model is empty, so that the model has begun the request that was sent to it."""
    with urllib.request.urlopen(server.metrics_url, timeout=30) as page:
        text = page.read().decode()
    waiting = re.search(rf'nv_inference_pending_request_count{{model="{model}",version="1"}} (\d)', text)
    return waiting is not None and waiting[1] == "0"


def test_one_that_a_client_sends_with_it_is_refused_with_what_to_do(served: Served) -> None:
    config: dict[str, object] = {"backend": "penstock", "parameters": {"isolation": {"string_value": "process"}}}
    with pytest.raises(ServerError, match=r'requests a separate process.*`backend: "penstock_stub"`'):
        served.server.control.load("later", {"config": json.dumps(config)})
    config["backend"] = "penstock_stub"
    served.server.control.load("later", {"config": json.dumps(config)})
    assert served.answers("later")
    assert len(served.server.stubs()) == 2


def test_what_the_stub_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_SERVE_ENV", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    add_model(tmp_path / "models", "apart", APART, HEADER + WORKS)
    monkeypatch.setattr("penstock.serving.server.shim", lambda: tmp_path)
    with pytest.raises(ServerError, match=r"^apart: a separate process(?s:.*)exchanges wrong data(?s:.*)setup --stub"):
        LocalServer(tmp_path / "models", model_host="native", environment=sys.executable).start()


PARAMETERS = 'parameters [ { key: "num_threads" value: { string_value: "2" } }, { key: \'isolation\', value: { string_value: "%s" } } ]'


@pytest.mark.parametrize(
    ("config", "default", "applies"),
    [
        (APART, "none", True),
        (OURS + PARAMETERS % "process", "none", True),
        (OURS + PARAMETERS % "none", "process", False),
        (OURS, "process", True),
        (OURS, "none", False),
        ('backend: "python"', "process", False),
        ("backend : 'penstock' parameters: < key: 'isolation' value < string_value: 'process' > >", "none", True),
        (OURS + "# " + PARAMETERS % "process", "none", False),
    ],
)
def test_configurations(config: str, default: str, applies: bool) -> None:
    isolation = Isolation(default, ["penstock", "dali"])
    assert isolation.applies_to(config) == applies
    assert ('"penstock_stub"' in isolation.amend(config)) == applies
