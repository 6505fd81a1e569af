"""``penstock serve`` as a process: it starts, reports, recovers, shuts down and cleans up."""

from __future__ import annotations

import functools
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

from free_ports import free_ports

pytestmark = pytest.mark.exhaustive

MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""

CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""

# Signals get their default effects: a shell's background job, such as this test may be, ignores Ctrl-C, and nohup makes it ignore SIGHUP.
_UNDISTURBED = ["env", "--default-signal=INT,HUP"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "quiet" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL)
    (folder.parent / "config.pbtxt").write_text(CONFIG)
    return tmp_path / "models"


def ports() -> list[str]:
    return [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), free_ports(3))]


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def descendants(pid: int) -> list[tuple[int, str]]:
    """Return the id and the name of each descendant of a process."""
    found = []
    # The children of all threads are listed, as Triton is not started by the main thread.
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    for child in " ".join(lists).split():
        try:
            found.append((int(child), Path(f"/proc/{child}/comm").read_text().strip()))
            found += descendants(int(child))
        except OSError:
            continue
    return found


class Serving:
    """A `penstock serve` process, started and ready."""

    def __init__(self, repository: Path, out: Path, *flags: str) -> None:
        self.out = out
        with out.open("w") as file:
            self.process = subprocess.Popen(
                [*_UNDISTURBED, sys.executable, "-m", "penstock", "serve", str(repository), *ports(), *flags],
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        wait(lambda: "Ctrl-C stops the server" in self.text() or self.process.poll() is not None)
        self.folder = Path(re.search(r"log +(\S+)/triton.log", self.text())[1])  # type: ignore[index]
        self.started = descendants(self.process.pid)

    def text(self) -> str:
        return self.out.read_text()

    def pids(self, name: str) -> list[int]:
        return [pid for pid, own in descendants(self.process.pid) if own.startswith(name)]

    def left_behind(self) -> list[str]:
        """Return the processes, folders and shared memory that are left after the command has ended."""
        left = [f"{pid} {name}" for pid, name in self.started if Path(f"/proc/{pid}").exists()]
        left += [str(self.folder)] if self.folder.exists() else []
        return left + [str(path) for path in Path("/dev/shm").glob(f"{self.shared_memory}*")]

    @functools.cached_property
    def shared_memory(self) -> str:
        (line,) = {Path(f"/proc/{pid}/cmdline").read_text() for pid in self.pids("tritonserver")}
        return re.search(r"shm-region-prefix-name=(\w+)", line)[1]  # type: ignore[index]


@pytest.fixture
def serve(repository: Path, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    running = []

    def start(*flags: str) -> Serving:
        running.append(Serving(repository, tmp_path / "out", *flags))
        assert running[-1].shared_memory
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.wait()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_serves_until_it_is_told_to_stop(serve: Callable[..., Serving], end: signal.Signals) -> None:
    serving = serve("--strict-readiness=true")
    assert "HTTP     http://127.0.0.1:" in serving.text()
    assert "quiet  1        ready" in serving.text()
    if end == signal.SIGTERM:
        (stub,) = serving.pids("triton_python")
        os.kill(stub, signal.SIGKILL)
        wait(lambda: "quiet serves again" in serving.text())
        (triton,) = serving.pids("tritonserver")
        os.kill(triton, signal.SIGKILL)
        wait(lambda: "Triton serves again" in serving.text())
    assert serving.left_behind() != []
    serving.started += descendants(serving.process.pid)
    serving.process.send_signal(end)
    assert serving.process.wait(60) == 0
    assert "stopping" in serving.text()
    # A process whose parent has ended is reaped by another process, after some time.
    wait(lambda: serving.left_behind() == [])


def test_leaves_nothing_behind_when_it_is_killed(serve: Callable[..., Serving]) -> None:
    serving = serve("--model-control-mode", "explicit", "--load-model=*")
    assert len(serving.left_behind()) > 3
    serving.process.kill()
    wait(lambda: serving.left_behind() == [])


def test_gives_up_on_a_triton_that_keeps_dying(serve: Callable[..., Serving]) -> None:
    serving = serve("--restarts", "0")
    (triton,) = serving.pids("tritonserver")
    os.kill(triton, signal.SIGKILL)
    assert serving.process.wait(60) == 1
    assert "Triton was ended by SIGKILL and is not started again" in serving.text()
    assert "Started HTTPService" in serving.text()
    wait(lambda: serving.left_behind() == [])


def test_a_port_in_use_is_a_clear_message(repository: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "penstock", "serve", str(repository), f"--http-port={port}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert f"penstock: HTTP port {port} cannot be used" in done.stderr
    assert "--http-port" in done.stderr


def test_a_wrong_setting_is_refused_before_anything_starts(repository: Path) -> None:
    for option, wanted in (
        ("--max-pixels=0", "a number from 1, or none"),
        ("--isolate-decoders=some", "auto, all or none"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "penstock", "serve", str(repository), option],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert f"it must be {wanted}" in done.stderr
