"""Requests that Triton traces and that call other models: answered, cancelled, and timed out."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later, until

CALLED = """
import time

def work(x):
    time.sleep(float(x[0]) / 1000)
    return x + 1

@pipeline_def(batch_size=4)
def called():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y")
"""
CALLING = """
@pipeline_def(batch_size=4)
def calling():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.triton_model(x, model="called", output_names=["y"], timeout_seconds={timeout}, name="y")
"""
CONFIG = """
backend: "penstock"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
"""
TRACED = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "-1", "log_frequency": "1"}
SLOW_MS = 1500


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for Triton's trace files."""
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "called", CONFIG, HEADER + CALLED)
    add_model(repository, "calling", CONFIG, HEADER + CALLING.format(timeout=0))
    add_model(repository, "hasty", CONFIG, HEADER + CALLING.format(timeout=0.2))
    flags = ["--trace-config", f"triton,file={traces / 'trace.json'}", "--trace-config", "mode=triton"]
    with stopped_later(LocalServer(repository, model_host="native", flags=flags)) as running:
        with tritonclient.http.InferenceServerClient(running.http_url) as client:
            # The first call compiles kernels.
            ask(client, "calling", x=np.zeros((1, 1), np.float32))
            client.update_trace_settings(None, TRACED)
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as own:
        yield own


def children(folder: Path, request_id: str) -> list[str]:
    """Return the models that a request has called, according to the traces that Triton has written."""
    named = [entry for entry in entries(folder) if "model_name" in entry]
    parents = {entry["id"] for entry in named if entry.get("request_id") == request_id and "parent_id" not in entry}
    return [entry["model_name"] for entry in named if entry.get("parent_id") in parents]


def entries(folder: Path) -> list[dict[str, Any]]:
    """Return the entries in Triton's trace files, including files that Triton is still writing, which lack their end."""
    found: list[dict[str, Any]] = []
    for path in folder.glob("trace.json*"):
        text = path.read_text().rstrip()
        if text:
            found += json.loads(text if text.endswith("]") else f"{text.rstrip(',')}]")
    return found


def start(server: LocalServer, request_id: str, milliseconds: float) -> tuple[Any, list[Any], threading.Event]:
    """Send a request to `calling`; return its handle, a list to which its error or None will be added, and an event that is then set."""
    grpc, errors, is_over = tritonclient.grpc.InferenceServerClient(server.grpc_url), [], threading.Event()
    x = tritonclient.grpc.InferInput("x", [1, 1], "FP32")
    x.set_data_from_numpy(np.array([[milliseconds]], np.float32))

    def answered(result: Any, error: Any) -> None:
        errors.append(error)
        is_over.set()

    return grpc.async_infer("calling", [x], answered, request_id=request_id), errors, is_over


def counted(client: Any, model: str, kind: str) -> int:
    statistics = client.get_inference_statistics(model)["model_stats"][0]["inference_stats"]
    return int(statistics.get(kind, {}).get("count", 0))


def test_a_traced_call_is_a_child_of_its_request(client: Any, traces: Path) -> None:
    for number in range(3):
        ask(client, "calling", f"asked-{number}", x=np.array([[1]], np.float32))
    for number in range(3):
        until(lambda number=number: children(traces, f"asked-{number}") == ["called"])


def test_a_cancelled_request_is_traced_to_its_end(server: LocalServer, client: Any, traces: Path) -> None:
    failed, began = counted(client, "calling", "fail"), time.monotonic()
    running, errors, is_over = start(server, "cancelled-1", SLOW_MS)
    time.sleep(0.3)
    running.cancel()
    assert is_over.wait(60)
    assert "cancelled" in str(errors[0]).lower()
    # The request waits until its call ends, because the call's trace must not outlive the request's.
    until(lambda: counted(client, "calling", "fail") == failed + 1)
    assert time.monotonic() - began > SLOW_MS / 1000
    until(lambda: children(traces, "cancelled-1") == ["called"])
    answer = ask(client, "calling", "after-1", x=np.array([[3]], np.float32))
    np.testing.assert_array_equal(answer.as_numpy("y"), [[4]])


def test_a_traced_call_that_takes_too_long(client: Any, traces: Path) -> None:
    with pytest.raises(InferenceServerException, match=r"no answer after 0.2 seconds"):
        ask(client, "hasty", "hasty-1", x=np.array([[SLOW_MS]], np.float32))
    until(lambda: children(traces, "hasty-1") == ["called"])


def test_many_traced_requests_some_of_which_are_cancelled(server: LocalServer, client: Any, traces: Path) -> None:
    def work(number: int) -> None:
        with tritonclient.http.InferenceServerClient(server.http_url) as own:
            for turn in range(10):
                if turn % 2:
                    running, _, is_over = start(server, f"many-{number}-{turn}", 30)
                    # The cancellation comes before the other model is called, while it computes, or after it has answered.
                    time.sleep(0.01 * (turn - 1))
                    running.cancel()
                    assert is_over.wait(60)
                else:
                    x = np.full((1, 2), number + turn, np.float32)
                    np.testing.assert_array_equal(
                        ask(own, "calling", f"many-{number}-{turn}", x=x).as_numpy("y"), x + 1
                    )

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    ask(client, "calling", "last", x=np.array([[1]], np.float32))
    until(lambda: children(traces, "last") == ["called"])
    # Requests that ran in one batch share a call, whose trace is a child of one of their traces.
    named = [entry for entry in entries(traces) if "model_name" in entry]
    called = [entry["parent_id"] for entry in named if "parent_id" in entry]
    assert called
    assert set(called) <= {entry["id"] for entry in named if entry["model_name"] in ("calling", "hasty")}
