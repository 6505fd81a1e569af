"""Models inside Triton's own process: what one of them does is its own affair, and memory is right whoever keeps it."""

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
from geventhttpclient.response import HTTPConnectionClosed
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask

PLAIN = """
@pipeline_def(batch_size=4)
def plain():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.copy(x, name="same")
"""
OPERATOR = """
@pipeline_def(batch_size=4)
def operator():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y")
"""
DECODES = """
@pipeline_def(batch_size=4)
def decodes():
    return fn.decoders.image(fn.external_source(name="x", dtype=types.UINT8, ndim=1), name="y")
"""
MISBEHAVING = {
    "exits": "import sys\n\ndef work(x):\n    if x[0] > 1: sys.exit(3)\n    return x\n",
    "forks": "import os\n\ndef work(x):\n    if x[0] > 1: os.fork()\n    return x\n",
    "exhausts": "def work(x):\n    if x[0] > 1: raise MemoryError\n    return x\n",
    "interrupts": "def work(x):\n    if x[0] > 1: raise KeyboardInterrupt\n    return x\n",
}
KEEPS = """
kept = []

def work(x):
    kept.append(x)
    return x + sum(one.sum() for one in kept) * 0 + len(kept)
"""
STARTS_THREADS = """
import threading, time
print("the model says hello")
threading.Thread(target=time.sleep, args=(3600,)).start()
threading.Thread(target=lambda: 1 / 0).start()
"""
FORKS_WORKERS = """
import multiprocessing

def work(x):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return x * pool.apply(len, ([1, 2],))
"""
FORGETS_A_LOCK = """
import threading
lock = threading.Lock()

def work(x):
    if x[0] > 1: lock.acquire()
    return x
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


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "triton.log"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, log: Path) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    config = 'backend: "penstock"\n'
    add_model(repository, "plain", config, HEADER + PLAIN)
    for name, source in MISBEHAVING.items():
        add_model(repository, name, config, HEADER + source + OPERATOR)
    add_model(repository, "keeps", config, HEADER + KEEPS + OPERATOR)
    add_model(repository, "starts_threads", config, HEADER + STARTS_THREADS + PLAIN)
    add_model(repository, "decodes", config, HEADER + DECODES)
    add_model(repository, "spawns", config, HEADER + FORKS_WORKERS + OPERATOR)
    for name, (source, _) in NOT_LOADED.items():
        defined = (
            HEADER + "@pipeline_def(batch_size=4)\n" + source if source.startswith("def") else source + HEADER + PLAIN
        )
        add_model(repository, name, config, defined)
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    # From the environment of the tests, whatever its numpy.
    with LocalServer(
        repository, way="native", environment=sys.executable, allow_failures=True, flags=flags, log=log
    ) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as connected:
        yield connected


def sent(client: Any, model: str, *numbers: float) -> list[float]:
    output = "same" if model in ("plain", "starts_threads") else "y"
    answer: list[float] = ask(client, model, x=np.array([numbers], np.float32)).as_numpy(output)[0].tolist()
    return answer


def test_no_process_is_started_for_models(server: LocalServer) -> None:
    assert server.stubs() == []


@pytest.mark.parametrize("model", sorted(MISBEHAVING))
def test_what_a_model_raises_is_that_request_s_error(server: LocalServer, client: Any, model: str) -> None:
    before = server.pid
    assert sent(client, model, 0, 1) == [0, 1]
    with pytest.raises(InferenceServerException) as caught:
        sent(client, model, 5, 1)
    told = {"exits": "SystemExit", "forks": "multiprocessing.get_context('spawn')", "exhausts": "MemoryError"}
    assert told.get(model, "KeyboardInterrupt") in caught.value.message()
    assert sent(client, model, 0, 2) == [0, 2]
    assert sent(client, "plain", 1, 2) == [1, 2]
    assert server.pid == before


@pytest.mark.parametrize("model", sorted(NOT_LOADED))
def test_a_model_that_cannot_be_loaded_says_why(server: LocalServer, client: Any, model: str) -> None:
    (state,) = (entry for entry in server.models() if entry.name == model)
    assert not state.ready
    assert NOT_LOADED[model][1] in state.reason
    assert sent(client, "plain", 1, 2) == [1, 2]


def test_memory_that_a_model_keeps_stays_right(server: LocalServer, client: Any) -> None:
    for number in range(1, 6):
        assert sent(client, "keeps", number, 0) == [number + number, number]
    server.control.unload("keeps")
    deadline = time.monotonic() + 20
    while any(entry.name == "keeps" and entry.state != "UNAVAILABLE" for entry in server.models()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    server.control.load("keeps")
    assert sent(client, "keeps", 1, 0) == [2, 1]


def test_models_may_print_and_start_threads(client: Any, log: Path) -> None:
    assert sent(client, "starts_threads", 1, 2) == [1, 2]
    assert "the model says hello" in log.read_text()


def test_models_may_start_processes_that_share_nothing(client: Any) -> None:
    assert sent(client, "spawns", 1, 2) == [2, 4]


def test_inputs_that_come_in_several_pieces(client: Any) -> None:
    # Triton hands on what it reads from a connection in pieces.
    x = np.random.default_rng(1).random((4, 1_000_000), np.float32)
    np.testing.assert_array_equal(ask(client, "plain", x=x).as_numpy("same"), x)


def test_statistics_count_what_failed(server: LocalServer, client: Any) -> None:
    before = client.get_inference_statistics("exits")["model_stats"][0]["inference_stats"]
    sent(client, "exits", 0)
    with pytest.raises(InferenceServerException):
        sent(client, "exits", 5)
    after = client.get_inference_statistics("exits")["model_stats"][0]["inference_stats"]
    for kind in ("success", "fail"):
        assert after[kind]["count"] == before[kind]["count"] + 1


def test_a_model_that_refused_requests_is_unloaded_soon(client: Any) -> None:
    for _ in range(3):
        with pytest.raises(InferenceServerException, match="not an image"):
            ask(client, "decodes", x=np.zeros((1, 700), np.uint8))
    client.unload_model("decodes")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        (entry,) = (one for one in client.get_model_repository_index() if one["name"] == "decodes")
        if entry["state"] == "UNAVAILABLE":
            return
        time.sleep(0.05)
    pytest.fail(f"the model is {entry['state']}")


def go_on_asking(url: str, answers: list[bool]) -> None:
    """Asks until there is no server any more."""
    with tritonclient.http.InferenceServerClient(url) as client, contextlib.suppress(HTTPConnectionClosed, OSError):
        while True:
            answers.append(sent(client, "plain", 1, 2) == [1, 2])


def test_a_forgotten_lock_stops_its_model_alone_and_not_the_end_of_the_server(tmp_path: Path) -> None:
    config = 'backend: "penstock"\n'
    add_model(tmp_path / "models", "plain", config, HEADER + PLAIN)
    add_model(tmp_path / "models", "forgets_a_lock", config, HEADER + FORGETS_A_LOCK + OPERATOR)
    log, answers = tmp_path / "triton.log", list[bool]()
    with ThreadPoolExecutor(4) as pool, LocalServer(tmp_path / "models", way="native", log=log) as server:
        with tritonclient.http.InferenceServerClient(server.http_url, network_timeout=1.0) as impatient:
            assert sent(impatient, "forgets_a_lock", 5) == [5]
            with pytest.raises(TimeoutError):
                sent(impatient, "forgets_a_lock", 5)
        asking = [pool.submit(go_on_asking, server.http_url, answers) for _ in range(4)]
        while len(answers) < 200:
            time.sleep(0.01)
        # Triton waits ten seconds for the requests that never end, and for connections that clients keep.
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 15
        for one in asking:
            one.result(timeout=20)
    assert all(answers)
    assert "Signal (11)" not in log.read_text()
