"""When the supervisor considers a model's process dead; without Triton, and with a fake clock."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest

from penstock.serving import supervisor
from penstock.serving.control import ModelState, NoAnswer
from penstock.serving.loaded_models import Restoration
from penstock.serving.stubs import Stub


class OneProcess:
    """A server of one model that collects the exit status of a dead process itself, as Triton does from 26.01 on, so that the
    process is no longer visible.

    It is also the supervisor's clock.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.instances = 1
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.repositories = [Path("/models")]
        self.clients_load = False
        self.running = True
        self.pid = 1
        self.control: Any = self
        self.asked: list[str] = []
        self.silent = False
        self.living = [self.start("resize_0_0")]
        self._new: list[Stub] = []

    def monotonic(self) -> float:
        return self.now

    def start(self, instance: str) -> Stub:
        """Add a process of the model, and return it."""
        process = subprocess.Popen(["sleep", "60"])
        self.processes[process.pid] = process
        started = int(Path(f"/proc/{process.pid}/stat").read_text().split()[21])
        return Stub(process.pid, started, instance, PurePath("/models/resize/1/model.py"))

    def end(self, stub: Stub) -> None:
        """End a process, and reap it."""
        self.processes[stub.pid].kill()
        self.processes[stub.pid].wait()

    def missed(self, stub: Stub) -> None:
        """Add a process whose start the judge has not seen."""
        self._new.append(stub)

    def stubs(self) -> list[Stub]:
        return [stub for stub in self.living if stub.running()]

    def started_stubs(self) -> list[Stub]:
        new, self._new = self._new, []
        return new

    def models(self) -> list[ModelState]:
        self._answer()
        return [ModelState("resize", "1", "READY", "")]

    def configuration(self, model: str) -> dict[str, Any]:
        self._answer()
        return {"instance_group": [{"name": "resize_0", "count": self.instances, "gpus": []}]}

    def unload(self, model: str) -> None:
        self.asked.append(f"unload {model}")

    def load(self, model: str, parameters: Any) -> None:
        self.asked.append(f"load {model}")

    def _answer(self) -> None:
        if self.silent:
            raise NoAnswer("timed out")


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProcess]:
    server = OneProcess()
    monkeypatch.setattr(supervisor, "time", server)
    yield server
    for stub in server.stubs():
        server.end(stub)


def look(server: OneProcess, models: supervisor._Models, seconds: float = 2.5) -> None:
    for _ in range(int(seconds / 0.1)):
        models.look()
        for repair in list(models._busy.values()):
            repair.join()
        server.now += 0.1


@pytest.mark.parametrize("instances", [0, 1])
def test_a_process_that_has_gone_is_missed_if_the_model_wants_as_many(one_process: OneProcess, instances: int) -> None:
    server = one_process
    server.instances = instances
    models = supervisor._Models(server, lambda line: None)  # type: ignore[arg-type]
    server.end(server.living[0])
    look(server, models)
    assert server.asked == (["unload resize"] if instances else [])


def test_a_process_that_was_never_seen_alive_is_missed(one_process: OneProcess) -> None:
    server = one_process
    stub = server.living.pop()
    models = supervisor._Models(server, lambda line: None)  # type: ignore[arg-type]
    server.end(stub)
    server.missed(stub)
    look(server, models)
    assert server.asked == ["unload resize"]


def test_the_process_that_completes_a_configuration_does_not_stand_for_one_that_has_died(
    one_process: OneProcess,
) -> None:
    server = one_process
    server.living.append(server.start("resize"))
    models = supervisor._Models(server, lambda line: None)  # type: ignore[arg-type]
    server.end(server.living[0])
    look(server, models)
    assert server.asked == ["unload resize"]


def test_a_death_is_remembered_until_the_server_answers(one_process: OneProcess) -> None:
    server = one_process
    models = supervisor._Models(server, lambda line: None)  # type: ignore[arg-type]
    server.silent = True
    server.end(server.living[0])
    look(server, models)
    assert server.asked == []
    server.silent = False
    look(server, models, 1)
    assert server.asked == ["unload resize"]


def test_a_model_that_is_loaded_again_serves_after_one_attempt(one_process: OneProcess) -> None:
    server = one_process
    reports: list[str] = []
    models = supervisor._Models(server, reports.append)  # type: ignore[arg-type]
    restoration = Restoration([], {}, {"resize": {"config": "{}"}}, ["lost"])
    models.restore(restoration)
    for repair in models._busy.values():
        repair.join()
    assert server.asked == ["load resize"]
    assert reports == [
        "lost is not loaded again: the files that a client sent for it are gone",
        "resize is loaded again as a client loaded it",
        "resize serves again",
    ]
