"""The local server: a real Triton with models of plain Python."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.serving.environment import describe, find_environment
from penstock.serving.server import LocalServer, ServerError, readable

IDENTITY_CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""

IDENTITY = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]) for x in inputs]
"""

FAILING = """
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("the lights are off")

    def execute(self, requests):
        return []
"""

PIPELINE = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=4)
def doubled():
    return fn.cast(fn.external_source(name="x", dtype=types.FLOAT, ndim=1) * 2, dtype=types.FLOAT, name="y")
"""


def add_model(repository: Path, name: str, source: str) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(source)
    (folder.parent / "config.pbtxt").write_text(IDENTITY_CONFIG)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    add_model(folder, "identity", IDENTITY)
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[LocalServer]:
    with LocalServer(repository) as running:
        yield running


def infer(server: LocalServer, values: list[float]) -> list[float]:
    tensor = {"name": "x", "shape": [1, len(values)], "datatype": "FP32", "data": values}
    request = urllib.request.Request(
        f"http://{server.http_url}/v2/models/identity/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["outputs"][0]["data"]


def test_serves_what_is_in_the_repository(server: LocalServer) -> None:
    assert server.running
    assert [(model.name, model.version, model.ready) for model in server.models()] == [("identity", "1", True)]
    assert infer(server, [1.0, 2.5]) == [1.0, 2.5]


def test_each_protocol_has_a_port_of_its_own(server: LocalServer) -> None:
    assert len(set(server.ports.values())) == 3
    for url in (server.http_url, server.grpc_url):
        host, port = url.split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
    with urllib.request.urlopen(server.metrics_url, timeout=30) as response:
        assert b"nv_inference_request_success" in response.read()


def test_does_not_start_twice(server: LocalServer) -> None:
    with pytest.raises(ServerError, match="runs already"):
        server.start()


def test_a_port_in_use_is_named(repository: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=rf"port {port} for gRPC .*in use.*--grpc-port"):
            LocalServer(repository, grpc_port=port).start()


def test_a_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"no model repository at '.*nowhere'"):
        LocalServer(tmp_path / "nowhere").start()


def test_wrong_flags_are_explained_from_the_log(repository: Path) -> None:
    with pytest.raises(ServerError, match="no-such-flag"):
        LocalServer(repository, flags=["--no-such-flag=1"]).start()


def test_models_that_fail_are_reported_with_the_reason(tmp_path: Path) -> None:
    add_model(tmp_path, "identity", IDENTITY)
    add_model(tmp_path, "broken", FAILING)
    with pytest.raises(ServerError) as caught:
        LocalServer(tmp_path).start()
    assert str(caught.value) == "1 of 2 models cannot be served:\n  broken: ValueError: the lights are off"
    with LocalServer(tmp_path, allow_failures=True) as server:
        assert {model.name: model.ready for model in server.models()} == {"identity": True, "broken": False}
        assert infer(server, [3.0]) == [3.0]


def test_notices_a_dead_model_and_leaves_nothing_behind(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "triton.log"
    with LocalServer(repository, log=log, flags=["--log-verbose=1"]) as server:
        pid, prefix = server.pid, server._shared_memory
        assert server.dead_stubs() == []
        (stub,) = server._stubs
        os.kill(stub, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not server.dead_stubs() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.dead_stubs() == [stub]
    assert not server.running
    assert not Path(f"/proc/{pid}").exists()
    assert list(Path("/dev/shm").glob(f"{prefix}*")) == []
    assert "I1" in log.read_text() or "I0" in log.read_text()
    with pytest.raises(ServerError, match="does not run"):
        _ = server.pid


def test_a_numpy_with_which_the_data_would_be_wrong_is_refused(tmp_path: Path) -> None:
    # Given as an Environment, it is not judged beforehand: the backend itself has to notice.
    environment = replace(describe(sys.executable), triton=find_environment().triton)
    (tmp_path / "preprocess" / "1").mkdir(parents=True)
    (tmp_path / "preprocess" / "config.pbtxt").write_text('backend: "penstock"\n')
    (tmp_path / "preprocess" / "1" / "pipeline.py").write_text(PIPELINE)
    server = LocalServer(tmp_path, environment=environment)
    if int(np.__version__.split(".")[0]) < 2:
        with server:
            assert all(model.ready for model in server.models())
    else:
        with pytest.raises(
            ServerError, match=r"cannot exchange data with numpy 2.*Serve from an environment with numpy 1.26"
        ):
            server.start()


def test_flags_replace_those_set_by_default() -> None:
    server = LocalServer(
        "models", http_port=1, flags=["--http-port=5", "--exit-timeout-secs=3", "--backend-config=a,b=c"]
    )
    server.ports = {"HTTP": 1, "gRPC": 2, "metrics": 3}
    flags = server._all_flags(Path("backends"))
    assert [flag for flag in flags if flag.startswith(("--http-port", "--exit-timeout"))] == [
        "--http-port=5",
        "--exit-timeout-secs=3",
    ]
    assert sum(flag.startswith("--backend-config") for flag in flags) == 2


@pytest.mark.parametrize(
    ("dressed", "plain"),
    [
        ("Internal: ValueError: no file\n\nAt:\n  backend.py(3): initialize\n", "ValueError: no file"),
        ('E1121 06:52:24.068356 4591 model.cc:798] "failed to load"', "failed to load"),
        ("Invalid argument: unexpected dims", "unexpected dims"),
        ("Internal: ConfigurationError: Invalid argument: wrong\n\nAt:\n  a.py(1): b\n", "wrong"),
        ("nothing special", "nothing special"),
    ],
)
def test_errors_are_shown_without_their_dressing(dressed: str, plain: str) -> None:
    assert readable(dressed) == plain
