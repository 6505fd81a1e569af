"""Processes killed under load: other models are not affected, killed processes are restarted, nothing is left behind."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from free_ports import free_ports
from served import stop_later
from traffic import Traffic, children, one_by_one
from traffic_models import write_model
from traffic_process import BIN, Counts

MODELS = ("crossing", "several", "twins")
PATIENCE = 90.0
"""The time limit for steps that take two or three seconds on an idle machine."""

pytestmark = pytest.mark.exhaustive


def wait_for(what: Callable[[], object]) -> bool:
    """Wait until a condition is true; return False if it does not become true in time."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Service:
    """`penstock serve` in a separate process, as users run it."""

    def __init__(self, repository: Path, log: Path, model_host: str) -> None:
        self.repository = repository
        self._model_host = model_host
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._ports = free_ports(3)

    @property
    def urls(self) -> tuple[str, str]:
        """The URLs for HTTP and gRPC."""
        return f"127.0.0.1:{self._ports[0]}", f"127.0.0.1:{self._ports[1]}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process of the command, which supervises the server."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start serving, unless it already serves, and wait until all models are ready."""
        if self._process is None or self._process.poll() is not None:
            options = [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), self._ports)]
            options.append(f"--backend={self._model_host}")
            # If the tests run under nohup, child processes would ignore this signal.
            command = ["env", "--default-signal=HUP", sys.executable, "-m", "penstock", "serve", str(self.repository)]
            with self._log.open("ab") as log:
                self._process = subprocess.Popen([*command, *options], stdout=log, stderr=subprocess.STDOUT)
        assert wait_for(lambda: all(map(self.ready, MODELS))), self._log.read_text()

    def stop(self) -> None:
        """Stop the service with SIGTERM."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)

    def ready(self, model: str) -> bool:
        """Return whether the server says that a model is ready."""
        connection = http.client.HTTPConnection(self.urls[0], timeout=5)
        try:
            connection.request("GET", f"/v2/models/{model}/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def triton(self) -> int:
        """Return the id of Triton's process."""
        return next(pid for pid in children(self.process.pid) if command_line(pid)[0].endswith("tritonserver"))

    def stubs(self, model: str = "") -> list[int]:
        """Return the ids of the stubs of a model, or of all models."""
        return [pid for pid in everything() if str(self.repository / model) in " ".join(command_line(pid)[1:2])]

    def left(self) -> list[list[str]]:
        """Return the command lines of Triton's processes that use the repository, whoever started them."""
        lines = [command_line(pid) for pid in everything() if pid != self.process.pid]
        return [line for line in lines if "triton" in line[0] and str(self.repository) in " ".join(line)]

    def shared_memory(self) -> str:
        """Return the prefix of the server's shared memory."""
        (flag,) = (part for part in command_line(self.triton()) if "shm-region-prefix-name=" in part)
        return flag.rpartition("=")[2]


def everything() -> list[int]:
    """Return the ids of all processes."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def command_line(pid: int) -> list[str]:
    """Return a process's program and arguments; one empty string if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[Service]:
    repository = tmp_path_factory.mktemp("repository")
    for model in MODELS:
        write_model(repository, model, instances=1 + (model == "twins"))
    service = Service(repository, tmp_path_factory.mktemp("log") / "serve.log", model_host)
    yield service
    stop_later(service.stop)


@pytest.fixture
def service(kept: Service) -> Service:
    """Return the running service, once all models answer correctly."""
    kept.start()
    return kept


def traffic_for(service: Service, models: tuple[str, ...] = MODELS) -> Traffic:
    return Traffic(*service.urls, clients=9, models=models, bad=0.05, pause=0.005)


def recovered(counts: Counts, model: str, since: float) -> float:
    """Return how many seconds after ``since`` a model failed last; assert that it has answered correctly again since then."""
    bins = {int(key.split()[0]): found for key, found in counts.timeline.items() if key.split()[1] == model}
    last = max((at for at, (_, others) in bins.items() if others), default=0)
    assert any(right for at, (right, _) in bins.items() if at > last), (
        f"{model} never answered again: {counts.mistakes}"
    )
    return max(0.0, (last + 1) * BIN - since)


def answers_again(traffic: Traffic, model: str, since: float) -> Callable[[], bool]:
    """Return a function that tells whether a model has given answers in the last 1.5 s, and only right ones."""

    def asked() -> bool:
        bins = {int(key.split()[0]): found for key, found in traffic.counts().timeline.items() if key.endswith(model)}
        recent = [found for at, found in bins.items() if at * BIN > max(since + 1, time.time() - 1.5)]
        return sum(right for right, _ in recent) > 5 and not any(others for _, others in recent)

    return asked


def assert_all_answer_right(service: Service) -> None:
    alone = one_by_one(*service.urls, models=MODELS, seed=7)
    assert alone.spotless, alone.mistakes


with_stubs = pytest.mark.parametrize("model_host", ["stub"], indirect=True, scope="module")


@with_stubs
@pytest.mark.parametrize("model", ["crossing", "twins"])
def test_a_killed_stub_concerns_its_model_alone(service: Service, model: str) -> None:
    others = tuple(set(MODELS) - {model})
    stubs = {other: set(service.stubs(other)) for other in others}
    with traffic_for(service) as traffic:
        traffic.flow()
        os.kill(service.stubs(model)[0], signal.SIGKILL)
        killed = time.time()
        assert wait_for(lambda: not service.ready(model)), "the model reads ready with a dead process"
        assert wait_for(answers_again(traffic, model, killed)), traffic.counts().mistakes
        counts = traffic.stop()
    print(f"{model}: the last failure came {recovered(counts, model, killed):.2f} s after its process was killed")
    assert counts.wrong == {}, counts.mistakes
    assert {failure.split(":")[0] for failure in (*counts.failed, *counts.misjudged)} <= {model}, counts.mistakes
    assert counts.accepted == {}, counts.mistakes
    assert {other: set(service.stubs(other)) for other in others} == stubs
    assert service.ready(model)
    assert_all_answer_right(service)


def test_a_killed_server_comes_back(service: Service) -> None:
    server, stubs = service.triton(), service.stubs()
    with traffic_for(service) as traffic:
        traffic.flow()
        os.kill(server, signal.SIGKILL)
        killed = time.time()
        for model in MODELS:
            assert wait_for(answers_again(traffic, model, killed)), traffic.counts().mistakes
        counts = traffic.stop()
    print(f"the last failure came {max(recovered(counts, model, killed) for model in MODELS):.2f} s after the kill")
    assert counts.wrong == {}, counts.mistakes
    assert counts.failed
    assert service.triton() != server
    assert set(stubs).isdisjoint(service.stubs())
    assert_all_answer_right(service)


@with_stubs
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_supervisor_that_ends_leaves_nothing_behind(service: Service, number: signal.Signals) -> None:
    prefix = service.shared_memory()
    with traffic_for(service) as traffic:
        traffic.flow()
        service.process.send_signal(number)
        assert wait_for(lambda: service.process.poll() is not None), "it goes on"
        assert wait_for(lambda: not service.left()), service.left()
        assert wait_for(lambda: not list(Path("/dev/shm").glob(f"{prefix}*")))
        counts = traffic.stop()
    assert counts.right
    assert counts.wrong == {}, counts.mistakes
    # The ports must be free again, so this start works like the first one.
    service.start()
    assert_all_answer_right(service)
