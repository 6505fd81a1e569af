"""``penstock serve`` as a process: starts, tells, heals, stops."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "quiet" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL)
    (folder.parent / "config.pbtxt").write_text(CONFIG)
    return tmp_path / "models"


def free_ports() -> list[str]:
    sockets = [socket.socket() for _ in range(3)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), ports)]


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def descendants(pid: int) -> list[tuple[int, str]]:
    """Process ids and names of a process's children and their children."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            found.append((int(child), Path(f"/proc/{child}/comm").read_text().strip()))
            found += descendants(int(child))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_it_is_told_to_stop(repository: Path, tmp_path: Path, end: signal.Signals) -> None:
    out = tmp_path / "out"
    with out.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "serve", str(repository), *free_ports(), "--strict-readiness=true"],
            stdout=file,
            stderr=subprocess.STDOUT,
            # A shell's background jobs ignore Ctrl-C, and the test may run in one.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        wait(lambda: "Ctrl-C stops the server" in out.read_text() or process.poll() is not None)
        text = out.read_text()
        assert "HTTP     http://127.0.0.1:" in text
        assert "quiet  1        ready" in text
        if end == signal.SIGTERM:
            (stub,) = [pid for pid, name in descendants(process.pid) if name.startswith("triton_python")]
            os.kill(stub, signal.SIGKILL)
            wait(lambda: "Triton serves again" in out.read_text())
        children = descendants(process.pid)
        assert children
        process.send_signal(end)
        assert process.wait(60) == 0
        assert "stopping" in out.read_text()
        # Those whose parent ended first are buried by another process, when it gets to it.
        wait(lambda: not [pid for pid, _ in children if Path(f"/proc/{pid}").exists()])
    finally:
        process.kill()
        process.wait()


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
    assert f"penstock: port {port} for HTTP cannot be had" in done.stderr
    assert "--http-port" in done.stderr
