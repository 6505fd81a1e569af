"""Failures in operation: limits of open files, removed logs, killed supervisors, silent starts, mistakes in configurations."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.serving import start_progress, supervisor
from penstock.serving.control import ServerError
from penstock.serving.server import MIN_OPEN_FILES, LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from free_ports import free_ports
from restarts import run
from served import HEADER, add_model

pytestmark = pytest.mark.exhaustive

CONFIG = """
backend: "penstock"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""

DOUBLED = (
    HEADER
    + """
@autoserialize
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def doubled():
    return fn.cast(fn.external_source(name="x", dtype=types.FLOAT, ndim=1) * FACTOR, dtype=types.FLOAT)
"""
)


SLEEPING = (
    HEADER
    + """
import time

def sleep(x):
    time.sleep(20)
    return x

@autoserialize
@pipeline_def(batch_size=4, num_threads=1, device_id=None, exec_dynamic=True)
def sleeping():
    return fn.python_function(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), function=sleep, num_outputs=1)
"""
)


def write_model(repository: Path, name: str, factor: int = 2) -> None:
    add_model(repository, name, CONFIG, DOUBLED.replace("FACTOR", str(factor)))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    write_model(folder, "doubled")
    return folder


def answer(server: LocalServer, model: str) -> float | None:
    """Return the model's answer for the number 3; None if there is no answer."""
    tensor = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [3.0]}
    with contextlib.closing(http.client.HTTPConnection(server.http_url, timeout=30)) as connection:
        try:
            connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
            told = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return None
    return told["outputs"][0]["data"][0] if "outputs" in told else None


def wait(condition: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]


def processes_with(word: str) -> list[int]:
    """Return the ids of the processes whose command lines contain a word."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if any(word in argument for argument in command_line(pid))]


def test_a_triton_that_hangs_is_started_again(monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
    monkeypatch.setattr(supervisor.Supervisor.__init__, "__defaults__", (None, None, 3.0))
    reports: list[str] = []
    with LocalServer(repository, report=reports.append) as server:
        wait(lambda: answer(server, "doubled") == 6.0)
        hanging = server.pid
        os.kill(hanging, signal.SIGSTOP)
        wait(lambda: server.running and server.pid != hanging and answer(server, "doubled") == 6.0, 120)
    assert any("although its process lives; it is ended" in line for line in reports)


class Command:
    """`penstock serve`, with its output in a file."""

    def __init__(self, repository: Path, output: Path, *options: str, **arguments: Any) -> None:
        self._output = output
        self.ports = free_ports(3)
        ports = [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), self.ports)]
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock", "serve", str(repository), *ports, *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                **arguments,
            )
        self.marker = str(repository)

    def __enter__(self) -> Command:
        wait(lambda: "Ctrl-C stops the server" in self.text() or self.process.poll() is not None)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    def text(self) -> str:
        return self._output.read_text()

    def triton(self) -> int:
        (pid,) = [pid for pid in processes_with(self.marker) if command_line(pid)[0].endswith("tritonserver")]
        return pid


# -- restarting --------------------------------------------------------------------------------------------------------


def test_a_server_that_dies_again_and_again_is_always_restarted(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_MAX_PAUSE_SECONDS", 0.3)
    reports: list[str] = []
    with LocalServer(repository, model_host="native", report=reports.append) as server:
        for death in range(8):
            os.kill(server.pid, signal.SIGKILL)
            wait(lambda: sum("Triton serves again" in line for line in reports) > death)  # noqa: B023
        assert answer(server, "doubled") == 6.0
        assert not server.wait(timeout=0.01)
    assert "it is started again now" in reports[0]
    assert sum("it is started again in 0.3 s" in line for line in reports) > 3


def test_a_pause_grows_to_a_minute_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: clock[0])
    deaths = supervisor._Deaths()
    pauses = []
    for _ in range(10):
        deaths.add()
        pauses.append(deaths.pause(free=1))
        deaths.recovered()
        clock[0] += 1
    assert pauses == [0, 0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    clock[0] += 15
    deaths.add()
    assert deaths.pause(free=1) == 0


def test_models_that_clients_loaded_are_loaded_again_as_they_loaded_them(tmp_path: Path) -> None:
    write_model(tmp_path, "first")
    write_model(tmp_path, "second", factor=5)
    reports: list[str] = []
    flags = ["--model-control-mode=explicit", "--load-model=first"]
    settings = {"allow_model_upload": "true"}
    with LocalServer(tmp_path, model_host="native", settings=settings, flags=flags, report=reports.append) as server:
        control = server.control
        control.load("second")
        config = control.configuration("first")
        assert config is not None
        # One model is loaded with a configuration from the client, and one with files from the client.
        note = {"note": {"string_value": "of a client"}}
        control.load("first", {"config": json.dumps(config | {"parameters": note})})
        source = DOUBLED.replace("FACTOR", "7").encode()
        sent = {
            "config": json.dumps(config | {"name": "sent"}),
            "file:1/pipeline.py": base64.b64encode(source).decode(),
        }
        control.load("sent", sent)
        assert [answer(server, model) for model in ("first", "second", "sent")] == [6.0, 15.0, 21.0]
        loaded = server._supervisor._models.loaded  # type: ignore[union-attr]
        wait(lambda: {"first", "second", "sent"} == set(loaded.names) and "sent" in loaded._uploaded)
        wait(lambda: loaded._current["first"]["parameters"] == note)
        folder = loaded._uploaded["sent"]
        os.kill(server.pid, signal.SIGKILL)
        wait(lambda: "Triton serves again" in "".join(reports))
        wait(lambda: [answer(server, model) for model in ("first", "second", "sent")] == [6.0, 15.0, 21.0])
        wait(lambda: (control.configuration("first") or {}).get("parameters") == note)
        assert not folder.exists()
        wait(lambda: loaded._uploaded["sent"].is_dir())
        folder = loaded._uploaded["sent"]
    assert not folder.exists()
    assert "sent is loaded again as a client loaded it" in reports


def test_kills_under_load_leave_nothing_behind(tmp_path: Path) -> None:
    findings = run(tmp_path, period=15, seconds=40, clients=4)
    assert findings.kills == 2
    # How soon a server serves again depends on the machine, which runs other tests at the same time.
    assert findings.problems(min_availability=0.2) == []


# -- ending ------------------------------------------------------------------------------------------------------------


def test_a_supervisor_and_a_guardian_that_are_both_killed_take_triton_with_them(
    repository: Path, tmp_path: Path
) -> None:
    with Command(repository, tmp_path / "output", env=os.environ | {"TMPDIR": str(tmp_path)}) as command:
        triton = command.triton()
        (folder,) = tmp_path.glob("penstock-serve-*")
        (guardian,) = (pid for pid in processes_with(str(folder)) if "guardian" in " ".join(command_line(pid)))
        os.kill(guardian, signal.SIGKILL)
        command.process.kill()
        command.process.wait()
        wait(lambda: not Path(f"/proc/{triton}").exists() or "tritonserver" not in command_line(triton)[0])
        assert folder.is_dir()
    # The next server removes the files that were left behind.
    with Command(repository, tmp_path / "output", env=os.environ | {"TMPDIR": str(tmp_path)}) as command:
        assert f"removed what a server left behind that was killed: {folder}" in re.sub(r"\s+", " ", command.text())
        assert not folder.exists()


def test_a_log_that_has_vanished_keeps_no_server_from_ending(repository: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    with Command(repository, tmp_path / "output", f"--log={logs / 'triton.log'}") as command:
        triton = command.triton()
        shutil.rmtree(logs)
    assert command.process.returncode == 0
    assert not Path(f"/proc/{triton}").exists()


def test_a_second_interrupt_ends_the_server_at_once(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    modules = 'parameters { key: "allowed_modules" value { string_value: "time" } }'
    add_model(repository, "doubled", CONFIG + modules, SLEEPING)
    reset = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    options = ("--trust-repository", "--exit-timeout-secs=25")
    with Command(repository, tmp_path / "output", *options, preexec_fn=reset) as command:
        triton = command.triton()
        asking = threading.Thread(target=ask_in_vain, args=(command,))
        asking.start()
        time.sleep(1)
        command.process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert command.process.poll() is None
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(15) == 130
        asking.join()
    assert not Path(f"/proc/{triton}").exists()


def ask_in_vain(command: Command) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(command)


def test_each_step_of_stopping_is_taken_though_another_fails(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = LocalServer(repository, model_host="native").start()
    pid, folder = server.pid, server._folder
    assert folder is not None

    def fail(*_: object) -> None:
        raise OSError("no more")

    monkeypatch.setattr("penstock.serving.server.drain", fail)
    with pytest.raises(OSError, match="no more"):
        server.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.path.exists()


# -- limits of open files ----------------------------------------------------------------------------------------------


def limit_files(soft: int, hard: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_few_open_files_are_refused_at_the_start(repository: Path, tmp_path: Path) -> None:
    with Command(repository, tmp_path / "output", preexec_fn=limit_files(64, 64)) as command:
        assert command.process.wait(30) == 1
    text = re.sub(r"\s+", " ", command.text())
    assert f"Triton may open only 64 files here (`ulimit -Hn`), and needs at least {MIN_OPEN_FILES}" in text
    assert "LimitNOFILE" in text


def test_the_limit_of_open_files_is_raised(repository: Path, tmp_path: Path) -> None:
    with Command(repository, tmp_path / "output", preexec_fn=limit_files(100, 5000)) as command:
        for pid in (command.process.pid, command.triton()):
            assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (5000, 5000)


@contextlib.contextmanager
def idle_connections(port: int, count: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.settimeout(5)
            with contextlib.suppress(OSError):
                client.connect(("127.0.0.1", port))
        yield


def test_connections_beyond_the_limit_do_not_fill_the_log(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "triton.log"
    limit = limit_files(MIN_OPEN_FILES, MIN_OPEN_FILES)
    with Command(repository, tmp_path / "output", f"--log={log}", preexec_fn=limit) as command:
        before = log.stat().st_size
        with idle_connections(command.ports[0], MIN_OPEN_FILES + 50):
            time.sleep(5)
        written = log.stat().st_size - before
    assert written < 100_000


# -- starting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        ("max_batch_size: 4", "max_batchsize: 4", r'/config.pbtxt:3:14: Message type "ModelConfig" has no field named'),
        ("[ 1 ] } ]", "[ 1 ] ]", r"/config.pbtxt:4:54: Expected identifier, got: ]"),
        ("TYPE_FP32", "TYPE_FLOAT", r'/config.pbtxt:4:43: Unknown enumeration value of "TYPE_FLOAT" for field'),
    ],
)
def test_mistakes_in_a_configuration_are_told_with_their_line(
    repository: Path, right: str, wrong: str, reason: str
) -> None:
    write_model(repository, "mistaken")
    path = repository / "mistaken" / "config.pbtxt"
    path.write_text(CONFIG.replace(right, wrong, 1))
    with pytest.raises(ServerError) as caught:
        LocalServer(repository, model_host="native").start()
    assert f"  mistaken: {repository}/mistaken{reason}" in str(caught.value)
    # With `device`, configurations are copied to be amended; the messages must be the same as without.
    with pytest.raises(ServerError) as caught:
        LocalServer(repository, model_host="native", settings={"device": "cpu"}).start()
    assert f"  mistaken: {repository}/mistaken{reason}" in str(caught.value)


def test_a_missing_version_or_configuration_is_told(repository: Path) -> None:
    write_model(repository, "versionless")
    shutil.rmtree(repository / "versionless" / "1")
    (repository / "nameless" / "1").mkdir(parents=True)
    with pytest.raises(ServerError) as caught:
        LocalServer(repository, model_host="native").start()
    assert "2 of 3 models cannot be served" in str(caught.value)
    assert "versionless: at least one version must be available" in str(caught.value)
    assert "nameless: Invalid model name: Could not determine backend" in str(caught.value)


def test_a_start_without_a_terminal_is_told_line_by_line(repository: Path, tmp_path: Path) -> None:
    with Command(repository, tmp_path / "output") as command:
        text = command.text()
    for line in ("starting Triton", "ready after"):
        assert re.search(rf"^\d\d:\d\d:\d\d {line}", text, re.MULTILINE), text


def test_what_takes_long_is_told_every_few_seconds() -> None:
    clock, lines = [0.0], list[str]()
    progress = start_progress.StartProgress(lines.append, lambda: clock[0])
    progress.begin("starting Triton")
    for second in range(1, 31):
        clock[0] = float(second)
        if second == 3:
            progress.observe('I1128 22:00:38.275943 6058 model_lifecycle.cc:472] "loading: thumbnail:1"')
        if second == 22:
            progress.observe("I1128 22:00:42.751015 6058 model_lifecycle.cc:839] \"successfully loaded 'thumbnail'\"")
        progress.look()
    progress.end()
    assert [line.split(" (")[0] for line in lines] == [
        "starting Triton",
        "loading thumbnail, for 2 s so far",
        "loading thumbnail, for 7 s so far",
        "loading thumbnail, for 12 s so far",
        "loading thumbnail, for 17 s so far",
        "Triton is starting, for 25 s so far",
        "Triton is starting, for 30 s so far",
        "ready after 30.0 s",
    ]


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 8 MiB: the files of one server take two."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while True:
            os.write(file.fileno(), bytes(4096))
    return filler


def ask(command: Command) -> int:
    tensor = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [3.0]}
    with contextlib.closing(http.client.HTTPConnection(f"127.0.0.1:{command.ports[0]}", timeout=30)) as connection:
        connection.request("POST", "/v2/models/doubled/infer", json.dumps({"inputs": [tensor]}))
        return connection.getresponse().status


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_costs_no_request_and_no_restart(repository: Path, tmp_path: Path, small_disk: Path) -> None:
    log = small_disk / "triton.log"
    variables = os.environ | {"TMPDIR": str(small_disk)}
    with Command(repository, tmp_path / "output", f"--log={log}", "--log-verbose=1", env=variables) as command:
        filler = fill(small_disk)
        assert {ask(command) for _ in range(20)} == {200}
        assert "Triton's log cannot be written" in re.sub(r"\s+", " ", command.text())
        os.kill(command.triton(), signal.SIGKILL)
        wait(lambda: "Triton serves again" in command.text())
        assert ask(command) == 200
        filler.unlink()
        assert ask(command) == 200
        wait(lambda: b"lines are lost: they could not be written" in log.read_bytes())
    assert command.process.returncode == 0
    assert [path.name for path in small_disk.iterdir()] == ["triton.log"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_no_room_for_the_files_of_a_server_is_a_clear_error(repository: Path, tmp_path: Path, small_disk: Path) -> None:
    # Leave space for the files that Python writes when it chooses a temporary folder.
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - 200_000)
    with Command(repository, tmp_path / "output", env=os.environ | {"TMPDIR": str(small_disk)}) as command:
        assert command.process.wait(60) == 1
    text = re.sub(r"\s+", " ", command.text())
    assert "No space left on device" in text
    assert "Errno" not in text
    assert "Traceback" not in text
