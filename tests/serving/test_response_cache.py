"""Triton's response cache, which would answer a repeated request that has failed with success, in a real Triton."""

from __future__ import annotations

import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from served import HEADER, add_model, ask, stopped_later
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

TENSOR = 'name: "{}" data_type: TYPE_FP32 dims: [ 1 ]'
CONFIG = f"""
backend: "penstock" max_batch_size: 4
input [ {{ {TENSOR.format("x")} }} ] output [ {{ {TENSOR.format("y")} }} ]
response_cache {{ enable: true }}
"""
REFUSING = (
    HEADER
    + """
def positive(x):
    if x[0] < 0:
        raise ValueError("it is negative")
    return x


@autoserialize
@pipeline_def(batch_size=4)
def pipeline():
    return fn.python_function(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), function=positive, name="y")
"""
)
FLAGS = ["--cache-config=local,size=1048576"]


HITS = b'nv_cache_num_hits_per_model{model="cached",version="1"} '


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    add_model(tmp_path, "cached", CONFIG, REFUSING)
    return tmp_path


def outputs(client: Any, value: float) -> Any:
    return ask(client, "cached", x=np.array([[value]], np.float32)).get_response()["outputs"]


def test_failures_are_kept_out_of_the_cache(repository: Path) -> None:
    reports: list[str] = []
    with (
        stopped_later(LocalServer(repository, flags=FLAGS, model_host="native", report=reports.append)) as server,
        tritonclient.http.InferenceServerClient(server.http_url) as client,
    ):
        for _ in range(3):
            with pytest.raises(InferenceServerException, match="it is negative"):
                outputs(client, -1)
        assert outputs(client, 1) == outputs(client, 1) != []
        with urllib.request.urlopen(server.metrics_url, timeout=30) as response:
            assert HITS + b"1" in response.read()
    assert any("of plain Python models with response_cache" in line for line in reports)


def test_cancelled_requests_are_kept_out_of_the_cache(repository: Path) -> None:
    source = repository / "cached" / "1" / "pipeline.py"
    source.write_text("import time\n" + source.read_text().replace("    return x", "    time.sleep(0.5)\n    return x"))
    with (
        stopped_later(LocalServer(repository, flags=FLAGS, model_host="native")) as server,
        tritonclient.http.InferenceServerClient(server.http_url) as client,
        tritonclient.grpc.InferenceServerClient(server.grpc_url) as calling,
    ):
        for value in range(4):
            tensor = tritonclient.grpc.InferInput("x", [1, 1], "FP32")
            tensor.set_data_from_numpy(np.array([[value]], np.float32))
            answered = threading.Event()
            call = calling.async_infer("cached", [tensor], lambda result, error, done=answered: done.set())
            time.sleep(0.2)
            call.cancel()
            assert answered.wait(30)
        assert all(outputs(client, value) for value in range(4))


def test_models_in_the_stub_are_refused(repository: Path) -> None:
    with stopped_later(LocalServer(repository, flags=FLAGS, model_host="stub", allow_failures=True)) as server:
        (model,) = server.models()
        assert model.failed
        assert "penstock serve --unsafe-response-cache" in model.reason


def test_from_the_stub_failures_are_repeated_as_successes(repository: Path) -> None:
    """This is the reason why models with a response cache are refused for the stub; if the test fails, they need not be any more."""
    settings = {"unsafe_response_cache": "true"}
    with (
        stopped_later(LocalServer(repository, flags=FLAGS, settings=settings, model_host="stub")) as server,
        tritonclient.http.InferenceServerClient(server.http_url) as client,
    ):
        with pytest.raises(InferenceServerException, match="it is negative"):
            outputs(client, -1)
        assert outputs(client, -1) == []
