"""Clients disconnect, or free memory, while they are being answered: other clients get right answers."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, stopped_later

# 4 MiB of floats, which threads send in pieces, after a wait in which tests disconnect or free memory.
COUNT = 1 << 20
WAITS = (
    HEADER
    + """
import time
from pathlib import Path

import numpy as np

# What tests wait for, beside the repository.
STARTED = Path(__file__).parents[3] / "started"


def slowly(value):
    STARTED.touch()
    time.sleep(0.3)
    return np.full(1 << 20, value[0], np.float32)


@autoserialize
@pipeline_def(batch_size=4)
def waits():
    return fn.python_function(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), function=slowly, name="y")
"""
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("served") / "repository"
    add_model(repository, "waits", 'backend: "penstock"\n', WAITS)
    with stopped_later(LocalServer(repository, model_host="native", environment=sys.executable)) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url, concurrency=8) as connected:
        yield connected


@pytest.fixture
def started(server: LocalServer) -> Path:
    """Return a file that exists as soon as the next request is being computed."""
    path = Path(server.repositories[0]).parent / "started"
    path.unlink(missing_ok=True)
    return path


@contextlib.contextmanager
def region(client: Any, size: int) -> Iterator[SharedMemory]:
    memory = SharedMemory(create=True, size=size)
    try:
        client.register_system_shared_memory(memory.name, f"/{memory.name}", size)
        yield memory
    finally:
        memory.close()
        memory.unlink()


def tensor(protocol: Any, value: float) -> Any:
    found = protocol.InferInput("x", [1, 1], "FP32")
    found.set_data_from_numpy(np.full((1, 1), value, np.float32))
    return found


def check_answers(client: Any, value: float) -> None:
    """Assert that the server gives the right answer."""
    answer = client.infer("waits", [tensor(tritonclient.http, value)]).as_numpy("y")
    np.testing.assert_array_equal(answer, np.full((1, COUNT), value, np.float32))


def send_and_leave(address: str, value: float, read: int) -> None:
    """Send a request by HTTP, read some bytes of its answer, and close the connection."""
    content = np.full((1, 1), value, np.float32).tobytes()
    header = json.dumps(
        {
            "inputs": [
                {"name": "x", "datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": len(content)}}
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        lines = [
            "POST /v2/models/waits/infer HTTP/1.1",
            f"Host: {address}",
            f"Inference-Header-Content-Length: {len(header)}",
            f"Content-Length: {len(header) + len(content)}",
        ]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + header + content)
        while read > 0:
            read -= len(connection.recv(min(read, 1 << 16)))


@pytest.mark.parametrize("read", [0, 100_000], ids=["before the answer", "in the middle of it"])
def test_clients_that_leave(server: LocalServer, client: Any, read: int) -> None:
    before = server.pid
    with ThreadPoolExecutor(9) as pool:
        leaving = [pool.submit(send_and_leave, server.http_url, number, read) for number in range(8)]
        check_answers(client, 77)
        for one in leaving:
            one.result()
    check_answers(client, 78)
    assert server.pid == before


def test_cancelled_requests(server: LocalServer, client: Any) -> None:
    before = server.pid
    ended = threading.Semaphore(0)
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as by_grpc:
        calls = [
            by_grpc.async_infer("waits", [tensor(tritonclient.grpc, number)], lambda result, error: ended.release())
            for number in range(8)
        ]
        check_answers(client, 7)
        for call in calls:
            call.cancel()
        for _ in calls:
            assert ended.acquire(timeout=60)
    check_answers(client, 8)
    assert server.pid == before


def ask_into(address: str, memory: SharedMemory, size: int, value: float) -> None:
    """Send a request, whose answer goes to shared memory, from a new thread."""
    with tritonclient.http.InferenceServerClient(address) as client:
        output = tritonclient.http.InferRequestedOutput("y")
        output.set_shared_memory(memory.name, size)
        client.infer("waits", [tensor(tritonclient.http, value)], outputs=[output])


def test_memory_that_is_unregistered_while_its_request_is_computed(
    server: LocalServer, client: Any, started: Path
) -> None:
    before = server.pid
    with region(client, 4 * COUNT) as memory, ThreadPoolExecutor(1) as pool:
        request = pool.submit(ask_into, server.http_url, memory, 4 * COUNT, 5)
        while not started.exists():
            time.sleep(0.01)
        # Triton does not unmap memory to which an answer will be written.
        with pytest.raises(InferenceServerException, match="currently in use"):
            client.unregister_system_shared_memory(memory.name)
        request.result()
        client.unregister_system_shared_memory(memory.name)
        assert (np.frombuffer(bytes(memory.buf), np.float32) == 5).all()
    check_answers(client, 9)
    assert server.pid == before


def test_memory_that_is_too_small(server: LocalServer, client: Any) -> None:
    with region(client, 4 * COUNT - 4) as memory:
        with pytest.raises(InferenceServerException, match="should be at least"):
            ask_into(server.http_url, memory, 4 * COUNT - 4, 5)
        client.unregister_system_shared_memory(memory.name)
    check_answers(client, 10)
