"""Loading and unloading models: nothing is left behind, and other models are not affected."""

from __future__ import annotations

import http.client
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import add_model, stopped_later
from traffic import Traffic, children, one_by_one, resident_mib
from traffic_models import write_model
from traffic_process import Counts

GONE = {"UNAVAILABLE", "NOT_FOUND"}
"""The possible statuses of a request to a model that is not loaded, over gRPC and HTTP."""

pytestmark = pytest.mark.exhaustive


def control(server: LocalServer, model: str, what: str) -> tuple[int, str]:
    """Make the server load or unload a model; return the status and the body of the answer."""
    connection = http.client.HTTPConnection(server.http_url, timeout=120)
    try:
        connection.request("POST", f"/v2/repository/models/{model}/{what}", b"{}")
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


# -- a hundred times -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Holdings:
    """The resources that a server without models holds."""

    resident_mib: float
    processes: int
    open_files: int
    threads: int
    shared_memory: int


def holdings(server: LocalServer) -> Holdings:
    """Return the resources of a server once the processes of its models have ended and it has cleaned up after them."""
    deadline = time.monotonic() + 20
    while children(server.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    held = _holdings(server)
    while time.monotonic() < deadline:
        time.sleep(0.3)
        before, held = held, _holdings(server)
        if replace(before, resident_mib=held.resident_mib) == held:
            break
    return held


def _holdings(server: LocalServer) -> Holdings:
    process = Path(f"/proc/{server.pid}")
    (prefix,) = (
        part for part in process.joinpath("cmdline").read_text().split("\0") if "shm-region-prefix-name=" in part
    )
    return Holdings(
        resident_mib(server.pid),
        len(children(server.pid)),
        len(os.listdir(process / "fd")),
        len(os.listdir(process / "task")),
        len(list(Path("/dev/shm").glob(f"{prefix.rpartition('=')[2]}*"))),
    )


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    for number in range(4):
        folder = tmp_path_factory.mktemp("model")
        write_model(folder, "crossing")
        (folder / "crossing").rename(repository / f"crossing_{number}")
    # The configurations are complete, because completing one would start a further process for each load.
    flags = ["--model-control-mode=explicit", "--disable-auto-complete-config"]
    with stopped_later(LocalServer(repository, allow_failures=True, flags=flags)) as running:
        yield running


def test_a_hundred_loads_leave_nothing_behind(empty_server: LocalServer) -> None:
    def all_of_them(times: int) -> Holdings:
        # One model at a time: concurrent loads and unloads sometimes kill Triton 2.51, with plain Python models, too.
        for _ in range(times):
            for number in range(4):
                for what in ("load", "unload"):
                    assert control(empty_server, f"crossing_{number}", what) == (200, "")
        return holdings(empty_server)

    # The first loads fill the server's own pools.
    early, late = all_of_them(5), all_of_them(20)
    assert (late.processes, late.shared_memory) == (0, early.shared_memory)
    assert late.open_files <= early.open_files + 4
    assert late.threads <= early.threads + 4
    assert late.resident_mib < 1.05 * early.resident_mib + 2


# -- under load ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    for model in ("crossing", "several", "twins"):
        write_model(repository, model)
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    with stopped_later(LocalServer(repository, allow_failures=True, flags=flags)) as running:
        yield running


def touched(server: LocalServer, model: str) -> None:
    """Update the time stamp of a model's file, so that Triton really loads the model again."""
    now = time.time_ns()
    os.utime(server.repositories[0] / model / "1" / "pipeline.py", ns=(now, now))


def under_load(server: LocalServer, model: str, *steps: str) -> Counts:
    """Take these steps (load or unload) with a model, twice, while clients call `crossing` and `several`; return the calls' counts."""
    urls = server.http_url, server.grpc_url
    with Traffic(*urls, clients=8, models=("crossing", "several"), bad=0.05, pause=0.005, seed=len(steps)) as traffic:
        traffic.flow()
        for _ in range(2):
            touched(server, model)
            for step in steps:
                assert control(server, model, step) == (200, "")
                time.sleep(0.3)
        counts = traffic.stop()
    assert min(counts.right["crossing"], counts.right["several"]) > 20
    return counts


def models_alone(server: LocalServer) -> Counts:
    """Return the counts of the models' answers without other traffic."""
    return one_by_one(server.http_url, server.grpc_url, models=("crossing", "several", "twins"), seed=9)


@pytest.mark.parametrize("steps", [("load",), ("unload", "load")])
def test_another_models_reload_is_not_noticed(server: LocalServer, steps: tuple[str, ...]) -> None:
    counts = under_load(server, "twins", *steps)
    assert counts.spotless, counts.mistakes
    alone = models_alone(server)
    assert alone.spotless, alone.mistakes


def test_a_reload_keeps_answering(server: LocalServer) -> None:
    counts = under_load(server, "crossing", "load")
    assert counts.spotless, counts.mistakes
    alone = models_alone(server)
    assert alone.spotless, alone.mistakes


def test_a_model_that_goes_and_comes_back_is_unavailable_in_between(server: LocalServer) -> None:
    counts = under_load(server, "crossing", "unload", "load")
    assert counts.wrong == {}, counts.mistakes
    assert counts.failed
    assert set(counts.failed) <= {f"crossing: {status}" for status in GONE}, counts.mistakes
    alone = models_alone(server)
    assert alone.spotless, alone.mistakes


def test_a_reload_that_fails_leaves_the_old_one(server: LocalServer) -> None:
    file = server.repositories[0] / "crossing" / "1" / "pipeline.py"
    before = file.read_text()
    try:
        file.write_text("raise LookupError('the lights are off')")
        status, message = control(server, "crossing", "load")
        assert status == 400
        assert "the lights are off" in message
        alone = models_alone(server)
        assert alone.spotless, alone.mistakes
    finally:
        file.write_text(before)


# -- the end -------------------------------------------------------------------------------------------------------------

PATIENT_CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""
PATIENT = """
import pathlib, time

class TritonPythonModel:
    def execute(self, requests):
        return []

    def finalize(self):
        time.sleep(2.5)
        pathlib.Path(__file__).with_name("finalized").touch()
"""


def fail_to_reload(server: LocalServer, model: str) -> None:
    (server.repositories[0] / model / "1" / "pipeline.py").write_text("raise LookupError")
    assert control(server, model, "load")[0] == 400


@pytest.mark.parametrize("steps", [(), ("unload",)])
def test_a_server_ends_soon_after_a_reload_that_failed(tmp_path: Path, steps: tuple[str, ...]) -> None:
    write_model(tmp_path, "crossing")
    # Without intervention, Triton would wait for so long, and be killed after 20 s.
    flags = ["--model-control-mode=explicit", "--load-model=*", "--exit-timeout-secs=60"]
    with LocalServer(tmp_path, flags=flags) as server:
        fail_to_reload(server, "crossing")
        for step in steps:
            control(server, "crossing", step)
        began = time.monotonic()
    assert time.monotonic() - began < 18


def test_a_server_ends_no_sooner_than_its_models_after_a_reload_that_failed(tmp_path: Path) -> None:
    write_model(tmp_path, "crossing")
    add_model(tmp_path, "patient", PATIENT_CONFIG, PATIENT, "model.py")
    with LocalServer(tmp_path, flags=["--model-control-mode=explicit", "--load-model=*"]) as server:
        fail_to_reload(server, "crossing")
    assert (tmp_path / "patient" / "1" / "finalized").exists()
