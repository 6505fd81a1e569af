"""Models whose code misbehaves: other models are not affected, whether models run in Triton's process or in the stub."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

PLAIN = """
@pipeline_def(batch_size=4)
def plain():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.copy(x, name="y")
"""
OPERATOR = """
@pipeline_def(batch_size=4)
def operator():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y")
"""
RAISING = {
    "exhausts": "MemoryError",
    "exits": "SystemExit",
    "fails": "ZeroDivisionError",
    "interrupts": "KeyboardInterrupt",
}
# The HTTP status tells clients who is to blame for an error: the server, the model, or the client.
STATUSES = {
    "fills_the_disk": ("OSError(28, 'No space left on device')", "503"),
    "exhausts": ("MemoryError", "503"),
    "fails": ("ZeroDivisionError", "500"),
    "rejects": ("ValueError('no face in it')", "400"),
}
RAISES = """
def work(x):
    if x[0] > 1: raise %s
    return x
"""
STARTS_THREADS = """
import threading, time
print("the model says hello")
# A process ends only after its other threads, and a stub has to end when it has completed the configuration.
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
threading.Thread(target=lambda: 1 / 0).start()
"""
FORGETS_A_LOCK = """
import threading
lock = threading.Lock()

def work(x):
    if x[0] > 1: lock.acquire()
    return x
"""
USES_TRITON = """
import threading
from penstock.serving import triton_api
from penstock.serving.metrics import Family

series = triton_api.series(Family("turn", "HISTOGRAM", "Turns of its threads.", buckets=tuple(range(100))), {})

def turn():
    while True: series.observe(50)

for _ in range(4): threading.Thread(target=turn, daemon=True).start()
"""
NOT_LOADED = {
    "fails_when_it_is_defined": ("def plain():\n    raise LookupError('the lights are off')\n", "the lights are off"),
    "fails_when_it_is_built": (
        "def plain():\n    return fn.readers.file(file_root='/nowhere', name='same')[0]\n",
        "/nowhere",
    ),
    "exits_at_import": ("import sys\nsys.exit('no licence')\n", "SystemExit: no licence"),
    "cannot_be_imported": ("import no_such_module\n", "No module named 'no_such_module'"),
    "is_interrupted": ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "runs_out": ("raise MemoryError('all of it')\n", "MemoryError: all of it"),
}


# With the stub, these tests are exhaustive: for each model, two processes are started, one after the other, each of which takes seconds.
@pytest.fixture(scope="module", params=["native", pytest.param("stub", marks=pytest.mark.exhaustive)])
def model_host(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Path:
    return tmp_path_factory.mktemp("log") / "triton.log"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, log: Path, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    config = 'backend: "penstock"\n'
    add_model(repository, "plain", config, HEADER + PLAIN)
    for name, error in (RAISING | {name: error for name, (error, _) in STATUSES.items()}).items():
        add_model(repository, name, config, HEADER + RAISES % error + OPERATOR)
    add_model(repository, "starts_threads", config, HEADER + STARTS_THREADS + PLAIN)
    for name, (source, _) in NOT_LOADED.items():
        defined = (
            HEADER + "@pipeline_def(batch_size=4)\n" + source if source.startswith("def") else source + HEADER + PLAIN
        )
        add_model(repository, name, config, defined)
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    with stopped_later(
        LocalServer(repository, model_host=model_host, allow_failures=True, flags=flags, log=log)
    ) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as connected:
        yield connected


def sent(client: Any, model: str, *numbers: float) -> list[float]:
    answer: list[float] = ask(client, model, x=np.array([numbers], np.float32)).as_numpy("y")[0].tolist()
    return answer


@pytest.mark.parametrize("model", sorted(RAISING))
def test_what_a_model_raises_is_that_request_s_error(server: LocalServer, client: Any, model: str) -> None:
    before = server.pid, server.stubs()
    assert sent(client, model, 0, 1) == [0, 1]
    with pytest.raises(InferenceServerException, match=RAISING[model]):
        sent(client, model, 5, 1)
    assert sent(client, model, 0, 2) == [0, 2]
    assert sent(client, "plain", 1, 2) == [1, 2]
    assert (server.pid, server.stubs()) == before


@pytest.mark.parametrize("model", sorted(STATUSES))
def test_errors_say_whose_fault_they_are(client: Any, model: str) -> None:
    with pytest.raises(InferenceServerException) as raised:
        sent(client, model, 5, 1)
    assert raised.value.status() == STATUSES[model][1]
    assert sent(client, model, 0, 2) == [0, 2]


@pytest.mark.parametrize("model", sorted(NOT_LOADED))
def test_a_model_that_cannot_be_loaded_says_why(server: LocalServer, client: Any, model: str) -> None:
    (state,) = (entry for entry in server.models() if entry.name == model)
    assert not state.ready
    assert NOT_LOADED[model][1] in state.reason
    assert sent(client, "plain", 1, 2) == [1, 2]


def test_models_may_print_and_start_threads(client: Any, log: Path) -> None:
    assert sent(client, "starts_threads", 1, 2) == [1, 2]
    assert "the model says hello" in log.read_text()


@pytest.mark.parametrize("model", ["plain"])
def test_a_model_is_unloaded_under_load(server: LocalServer, client: Any, model: str) -> None:
    url, asked, refused = server.http_url, list[int](), list[str]()

    def go_on(number: int) -> None:
        with tritonclient.http.InferenceServerClient(url) as own:
            while not refused:
                try:
                    assert sent(own, model, number, 2) == [number, 2]
                except InferenceServerException as error:
                    refused.append(error.message())
                asked.append(number)

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(go_on, number) for number in range(8)]
        while len(asked) < 100:
            time.sleep(0.01)
        server.control.unload(model)
        for one in asking:
            one.result(timeout=20)
    assert all("unknown model" in message or "not ready" in message for message in refused), refused
    assert sent(client, "starts_threads", 1, 2) == [1, 2]
    deadline = time.monotonic() + 20
    while next(entry for entry in server.models() if entry.name == model).state != "UNAVAILABLE":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    server.control.load(model)
    assert sent(client, model, 1, 2) == [1, 2]


def ask_for_what_never_comes(url: str) -> None:
    """Send a request that takes a lock and does not release it, and then one that waits for the lock."""
    with tritonclient.http.InferenceServerClient(url) as patient:
        assert sent(patient, "forgets_a_lock", 5) == [5]
    with (
        tritonclient.http.InferenceServerClient(url, network_timeout=1.0) as impatient,
        pytest.raises(TimeoutError),
    ):
        sent(impatient, "forgets_a_lock", 5)


def test_a_forgotten_lock_stops_its_model_alone_and_not_the_end_of_the_server(tmp_path: Path, model_host: str) -> None:
    config = 'backend: "penstock"\n'
    add_model(tmp_path / "models", "plain", config, HEADER + PLAIN)
    add_model(tmp_path / "models", "forgets_a_lock", config, HEADER + FORGETS_A_LOCK + OPERATOR)
    answers = [list[bool]() for _ in range(4)]
    # How many seconds the server waits for requests that never end.
    flags = ["--exit-timeout-secs=3"]

    def ask_until_refused(url: str, own: list[bool]) -> None:
        with (
            tritonclient.http.InferenceServerClient(url) as client,
            contextlib.suppress(InferenceServerException),
        ):
            while True:
                own.append(sent(client, "plain", 1, 2) == [1, 2])

    with (
        ThreadPoolExecutor(4) as pool,
        LocalServer(tmp_path / "models", model_host=model_host, flags=flags) as server,
    ):
        ask_for_what_never_comes(server.http_url)
        asking = [pool.submit(ask_until_refused, server.http_url, own) for own in answers]
        while min(map(len, answers)) < 50:
            time.sleep(0.01)
        began = time.monotonic()
        server.stop()
        # A server that has not ended after 20 s is killed.
        assert time.monotonic() - began < 18
        for one in asking:
            one.result(timeout=20)
    assert all(map(all, answers))


def test_when_the_exit_timeout_has_expired_the_server_exits_beside_threads_that_use_it(tmp_path: Path) -> None:
    config = 'backend: "penstock"\n'
    add_model(tmp_path / "models", "forgets_a_lock", config, HEADER + USES_TRITON + FORGETS_A_LOCK + OPERATOR)
    log, flags = tmp_path / "triton.log", ["--exit-timeout-secs=1"]
    with LocalServer(tmp_path / "models", model_host="native", log=log, flags=flags) as server:
        ask_for_what_never_comes(server.http_url)
        server.stop()
    said = log.read_text()
    assert "Exit timeout expired. Exiting immediately." in said
    assert "Signal (11)" not in said
