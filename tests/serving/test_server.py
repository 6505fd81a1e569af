"""The local server: a real Triton with plain Python models."""

from __future__ import annotations

import http.server
import json
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.serving.control import ServerError, readable
from penstock.serving.environment import describe, find_environment
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import stopped_later

pytestmark = pytest.mark.exhaustive

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
    with stopped_later(LocalServer(repository)) as running:
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
    with pytest.raises(ServerError, match="already running"):
        server.start()


def test_a_port_in_use_is_named(repository: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=rf"gRPC port {port} .*in use.*--grpc-port"):
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
    with stopped_later(LocalServer(tmp_path, allow_failures=True)) as server:
        assert {model.name: model.ready for model in server.models()} == {"identity": True, "broken": False}
        assert infer(server, [3.0]) == [3.0]


class Ending(LocalServer):
    """A server that records whether it is drained when it ends."""

    drained: bool | None = None

    def _end(self, orderly: bool) -> None:
        self.drained = orderly
        super()._end(orderly)


def test_a_server_that_is_not_ready_in_time_is_not_drained(repository: Path) -> None:
    server = Ending(repository, timeout=0.01)
    with pytest.raises(ServerError, match=r"not ready after 0 s, of which it had a processor for \d+: "):
        server.start()
    # Triton has not answered any request yet, and may never answer the requests that draining would send.
    assert server.drained is False


def test_a_server_that_is_killed_at_its_start_is_explained_by_its_last_words(tmp_path: Path) -> None:
    folder = tmp_path / "fatal" / "1"
    folder.mkdir(parents=True)
    (folder / "pipeline.py").write_text('import os\nos.write(2, b"the cause, in plain text\\n")\nos.abort()\n')
    (folder.parent / "config.pbtxt").write_text('backend: "penstock"\n')
    with pytest.raises(ServerError, match=r"(?s)SIGABRT.*the cause, in plain text"):
        LocalServer(tmp_path).start()


def test_leaves_nothing_behind(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "triton.log"
    with LocalServer(repository, log=log, flags=["--log-verbose", "1"]) as server:
        pid, folder = server.pid, server._folder and server._folder.path
        (stub,) = server.stubs()
        assert (stub.instance, stub.model_in(repository), stub.running()) == ("identity_0_0", "identity", True)
        assert list(Path("/dev/shm").glob(f"{server.shared_memory}*")) != []
        assert folder is not None
        assert folder.is_dir()
    assert not server.running
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()
    assert list(Path("/dev/shm").glob(f"{server.shared_memory}*")) == []
    assert "I1" in log.read_text() or "I0" in log.read_text()
    with pytest.raises(ServerError, match="not running"):
        _ = server.pid
    server.stop()


class Obliging(http.server.BaseHTTPRequestHandler):
    """Answers like a Triton without models."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")

    do_POST = do_GET

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture
def obliging_port() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), Obliging) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def silent_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("program", ["obliging", "silent"])
def test_ports_that_another_program_takes_meanwhile_are_chosen_anew(
    repository: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, program: str
) -> None:
    server, tries = LocalServer(repository), list[int]()
    taken = request.getfixturevalue(f"{program}_port")
    take_ports = server._take_ports

    def take() -> None:
        take_ports()
        if not tries:
            server.ports["HTTP"] = taken
        tries.append(server.ports["HTTP"])

    monkeypatch.setattr(server, "_take_ports", take)
    with stopped_later(server):
        assert len(tries) == 2
        assert infer(server, [1.0]) == [1.0]


def test_answers_are_cached_where_that_is_asked_for(tmp_path: Path) -> None:
    add_model(tmp_path, "identity", IDENTITY)
    with (tmp_path / "identity" / "config.pbtxt").open("a") as config:
        config.write("response_cache { enable: true }\n")
    with stopped_later(LocalServer(tmp_path, flags=["--cache-config=local,size=1048576"])) as server:
        assert infer(server, [4.0]) == infer(server, [4.0]) == [4.0]
        with urllib.request.urlopen(server.metrics_url, timeout=30) as response:
            assert b'nv_cache_num_hits_per_model{model="identity",version="1"} 1' in response.read()


def test_settings_reach_the_models(tmp_path: Path) -> None:
    add_model(tmp_path, "identity", IDENTITY.replace("import triton", "import os, json\nimport triton"))
    source = (tmp_path / "identity" / "1" / "model.py").read_text()
    telling = """        told = json.loads(os.environ["PENSTOCK_BACKEND_CONFIG"])
        sizes = [float(told["penstock"]["max_pixels"]), float(told["dali"]["num_threads"]), len(told["penstock"])]
        inputs = [x * 0 + sizes for x in inputs]
        return"""
    (tmp_path / "identity" / "1" / "model.py").write_text(source.replace("        return", telling))
    flags = ["--backend-config=penstock,max_pixels=5", "--backend-config", "dali,num_threads=3"]
    flags += ["--backend-config=penstock,max_bytes=8"]
    with stopped_later(LocalServer(tmp_path, flags=flags, settings={"max_pixels": "7"})) as server:
        assert infer(server, [0.0, 0.0, 0.0]) == [7.0, 3.0, 2.0]


def test_a_numpy_with_which_the_data_would_be_wrong_is_refused(tmp_path: Path) -> None:
    # An Environment object is not checked beforehand, so the backend itself must notice the problem.
    environment = replace(describe(sys.executable), triton=find_environment().triton)
    (tmp_path / "preprocess" / "1").mkdir(parents=True)
    (tmp_path / "preprocess" / "config.pbtxt").write_text('backend: "penstock"\n')
    (tmp_path / "preprocess" / "1" / "pipeline.py").write_text(PIPELINE)
    server = LocalServer(tmp_path, model_host="stub", environment=environment)
    if int(np.__version__.split(".")[0]) < 2:
        with server:
            assert all(model.ready for model in server.models())
    else:
        with pytest.raises(
            ServerError, match=r"cannot exchange data with numpy 2.*Serve from an environment with numpy 1.26"
        ):
            server.start()


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
