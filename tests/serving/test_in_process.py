"""Models inside Triton's process: answers remain right whoever still refers to their memory; processes; failures."""

from __future__ import annotations

import contextlib
import hashlib
import ssl
import sys
import time
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
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
    return fn.copy(x, name="same")
"""
OPERATOR = """
@pipeline_def(batch_size=4)
def operator():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y")
"""
KEEPS_OUTPUTS = """
import numpy as np
from penstock.schema import Input, Operator, OutputSpec, Schema, register_operator

kept = []

class Keeping(Operator):
    schema = Schema(name="Keeping", inputs=(Input("input"),))

    def describe(self, workspace):
        return [OutputSpec(workspace.inputs[0].dtype, "", workspace.inputs[0].ndim())]

    def infer(self, sample):
        return sample.shapes[0]

    def compute(self, sample):
        np.copyto(sample.outputs[0], sample.inputs[0])
        for value, output in kept:
            if (output != value).any():
                raise RuntimeError("what an operator keeps was written to")
        kept.append((sample.inputs[0][0], sample.outputs[0]))
        if sample.inputs[0][0] < 0:
            kept.clear()

# The file is run twice: for the configuration, and for the model.
if not hasattr(fn, "keeping"):
    register_operator(Keeping)

@pipeline_def(batch_size=4)
def keeping():
    return fn.keeping(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), name="y")
"""
DECODES = """
@pipeline_def(batch_size=4)
def decodes():
    return fn.decoders.image(fn.external_source(name="x", dtype=types.UINT8, ndim=1), name="y")
"""
KEEPS = """
import threading, time

# At its end, the server does not wait for it.
threading.Thread(target=time.sleep, args=(3600,)).start()
kept = []

def work(x):
    kept.append(x)
    return x + sum(one.sum() for one in kept) * 0 + len(kept)
"""
# Without precautions, this code would end or fork the server.
ENDS_OR_FORKS = {
    "exits": ("import sys\n\ndef work(x):\n    if x[0] > 1: sys.exit(3)\n    return x\n", "SystemExit"),
    "forks": (
        "import os\n\ndef work(x):\n    if x[0] > 1: os.fork()\n    return x\n",
        "multiprocessing.get_context('spawn')",
    ),
}
FORKS_WORKERS = """
import multiprocessing

def work(x):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return x * pool.apply(len, ([1, 2],))
"""
# The pipeline is also closed after the configuration was completed; only the model gets this number.
FAILS_TO_CLOSE = """
from penstock import Pipeline

numbers = []

def work(x):
    numbers.append(x[0])
    return x

def close():
    if 17 in numbers: raise SystemExit("the disk is full")

@pipeline_def(batch_size=4)
def fails_to_close():
    Pipeline.current().close = close
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y")
"""
# Triton is linked with another OpenSSL than Python.
HASHES = """
import hashlib, ssl
import numpy as np

def work(x):
    text = f"{hashlib.new('sha512', x.tobytes()).hexdigest()} {ssl.OPENSSL_VERSION}"
    return np.frombuffer(text.encode(), np.uint8).astype(np.float32)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    config = 'backend: "penstock"\n'
    add_model(repository, "plain", config, HEADER + PLAIN)
    for name, (source, _) in ENDS_OR_FORKS.items():
        add_model(repository, name, config, HEADER + source + OPERATOR)
    add_model(repository, "keeps", config, HEADER + KEEPS + OPERATOR)
    add_model(repository, "keeps_outputs", config, HEADER + KEEPS_OUTPUTS)
    add_model(repository, "decodes", config, HEADER + DECODES)
    add_model(repository, "spawns", config, HEADER + FORKS_WORKERS + OPERATOR)
    add_model(repository, "hashes", config, HEADER + HASHES + OPERATOR)
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    # Models run in the environment of the tests, whatever its version of numpy.
    with stopped_later(
        LocalServer(repository, model_host="native", environment=sys.executable, flags=flags)
    ) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as connected:
        yield connected


def sent(client: Any, model: str, *numbers: float) -> list[float]:
    output = "same" if model == "plain" else "y"
    answer: list[float] = ask(client, model, x=np.array([numbers], np.float32)).as_numpy(output)[0].tolist()
    return answer


def test_no_process_is_started_for_models(server: LocalServer) -> None:
    assert server.stubs() == []


@pytest.mark.parametrize("model", sorted(ENDS_OR_FORKS))
def test_what_would_end_or_copy_the_server_is_an_error(server: LocalServer, client: Any, model: str) -> None:
    before = server.pid
    assert sent(client, model, 0, 1) == [0, 1]
    with pytest.raises(InferenceServerException) as caught:
        sent(client, model, 5, 1)
    assert ENDS_OR_FORKS[model][1] in caught.value.message()
    assert sent(client, model, 0, 2) == [0, 2]
    assert server.pid == before


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


def test_outputs_that_an_operator_keeps_stay_right(client: Any) -> None:
    # The last number makes the operator release the outputs, because Triton does not unload a model that still refers to answers.
    for number in (0, 1, 2, 3, 4, 5, 6, -1):
        x = np.full((1, 50_000), number, np.float32)
        np.testing.assert_array_equal(ask(client, "keeps_outputs", x=x).as_numpy("y"), x)


def test_answers_are_written_where_clients_want_them(client: Any) -> None:
    x = np.random.default_rng(2).random((3, 50_000), np.float32)
    size = x.nbytes
    # The second output begins at an address that is not aligned for floats.
    with shared_memory(client, 2 * size + 2) as (name, memory):
        tensor = tritonclient.http.InferInput("x", list(x.shape), "FP32")
        tensor.set_data_from_numpy(x)
        for start in (0, size + 2):
            output = tritonclient.http.InferRequestedOutput("same")
            output.set_shared_memory(name, size, start)
            client.infer("plain", [tensor], outputs=[output])
            assert bytes(memory[start : start + size]) == x.tobytes()
        output = tritonclient.http.InferRequestedOutput("same")
        output.set_shared_memory(name, size - 4)
        with pytest.raises(InferenceServerException, match=f"should be at least {size} bytes"):
            client.infer("plain", [tensor], outputs=[output])
        assert client.infer("plain", [tensor]).as_numpy("same").tobytes() == x.tobytes()


@contextlib.contextmanager
def shared_memory(client: Any, size: int) -> Iterator[tuple[str, memoryview]]:
    memory = SharedMemory(create=True, size=size)
    try:
        client.register_system_shared_memory(memory.name, f"/{memory.name}", size)
        yield memory.name, memory.buf
        client.unregister_system_shared_memory(memory.name)
    finally:
        memory.close()
        memory.unlink()


def test_models_may_start_processes_that_share_nothing(client: Any) -> None:
    assert sent(client, "spawns", 1, 2) == [2, 4]


def test_modules_of_python_use_its_libraries_not_those_of_triton(client: Any) -> None:
    told = bytes(map(int, sent(client, "hashes", 1, 2))).decode()
    assert told == f"{hashlib.sha512(np.array([1, 2], np.float32).tobytes()).hexdigest()} {ssl.OPENSSL_VERSION}"


def test_inputs_that_come_in_several_pieces(client: Any) -> None:
    # Triton passes long inputs in several pieces, as they arrive over the connection.
    x = np.random.default_rng(1).random((4, 1_000_000), np.float32)
    np.testing.assert_array_equal(ask(client, "plain", x=x).as_numpy("same"), x)


def test_statistics_count_what_failed(server: LocalServer, client: Any) -> None:
    def counted() -> list[int]:
        (statistics,) = client.get_inference_statistics("exits")["model_stats"]
        return [int(statistics["inference_stats"][kind]["count"]) for kind in ("success", "fail")]

    succeeded, failed = counted()
    sent(client, "exits", 0)
    with pytest.raises(InferenceServerException):
        sent(client, "exits", 5)
    # The backend, like all backends of Triton, counts a request only after it has answered it.
    deadline = time.monotonic() + 20
    while counted() != [succeeded + 1, failed + 1]:
        assert time.monotonic() < deadline, counted()
        time.sleep(0.05)


def test_a_model_that_refused_requests_is_unloaded_soon(client: Any) -> None:
    for _ in range(3):
        with pytest.raises(InferenceServerException, match="not an image"):
            ask(client, "decodes", x=np.zeros((1, 700), np.uint8))
    client.unload_model("decodes")
    # The model is unloaded after one garbage collection, or after two, if a request arrived during the first one; the pause between
    # them is twenty times as long as the first one.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        (entry,) = (one for one in client.get_model_repository_index() if one["name"] == "decodes")
        if entry["state"] == "UNAVAILABLE":
            return
        time.sleep(0.05)
    pytest.fail(f"the model is {entry['state']}")


def test_the_log_names_models_that_could_not_be_closed(tmp_path: Path) -> None:
    repository, log = tmp_path / "models", tmp_path / "log"
    config = 'backend: "penstock"\n'
    add_model(repository, "plain", config, HEADER + PLAIN)
    add_model(repository, "fails_to_close", config, HEADER + FAILS_TO_CLOSE)
    with (
        LocalServer(repository, model_host="native", environment=sys.executable, log=log) as server,
        tritonclient.http.InferenceServerClient(server.http_url) as client,
    ):
        assert sent(client, "fails_to_close", 17) == [17]
        # While the client is connected, Triton does not close models; the server's supervisor has the backend close them.
        server.stop()
    lines = log.read_text()
    assert "'fails_to_close' could not be closed: the model's code raised SystemExit: the disk is full" in lines
    assert "penstock: 1 of 2 instances of models could not be closed" in lines
