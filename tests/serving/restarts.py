"""Kills a server again and again under load: ``python tests/serving/restarts.py --period 20 --minutes 30``.

Runs `penstock serve` in a separate process, as users do, and the clients of `traffic.py`. Every few seconds, it kills
Triton with one of several signals. The exit status is 1 if an answer was wrong, if a model was unavailable for more than a
tenth of the time, or if anything was left behind: processes, folders, shared memory, files that are open in the supervisor.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from free_ports import free_ports
from traffic import Traffic, children
from traffic_models import write_model
from traffic_process import BIN, Counts

MODELS = ("crossing", "several")
SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
"""The signals that end Triton, sent in turn; the supervisor counts each end as a death."""

MIN_AVAILABILITY = 0.9
WINDOW_SECONDS = 0.5
"""The length of a time window. A model is available in a window if it answered requests, and answered all of them correctly."""


@dataclass(frozen=True)
class Findings:
    """The findings of a run.

    Attributes:
        kills: the number of times that Triton was killed.
        availability: for each model, the fraction of time windows in which it was available.
        right, failed, wrong: the numbers of requests with a right answer, an error, or a wrong answer: one with another request's data.
        descriptors: the number of files open in the supervisor, after the first start and at the end.
        threads: the number of the supervisor's threads, after the first start and at the end.
        resident_mib: the supervisor's resident memory in MiB, after the first start and at the end.
        exit_status: the exit status of the command after SIGTERM.
        left: the processes and files that were left behind.
    """

    kills: int
    availability: dict[str, float]
    right: int
    failed: int
    wrong: int
    descriptors: tuple[int, int]
    threads: tuple[int, int]
    resident_mib: tuple[float, float]
    exit_status: int
    left: list[str]

    def problems(self, min_availability: float = MIN_AVAILABILITY) -> list[str]:
        """Return a description of each expectation that was not met."""
        found = [f"{self.wrong} answers were wrong"] if self.wrong else []
        found += [
            f"{model} answered {share:.1%} of the time"
            for model, share in self.availability.items()
            if share < min_availability
        ]
        found += [f"left behind: {what}" for what in self.left]
        # If each death left a file or a thread open, there would be more than these.
        if self.descriptors[1] > self.descriptors[0] + 3:
            found.append(f"the supervisor has {self.descriptors[1]} files open, and had {self.descriptors[0]}")
        if self.threads[1] > self.threads[0] + 3:
            found.append(f"the supervisor has {self.threads[1]} threads, and had {self.threads[0]}")
        if self.exit_status:
            found.append(f"the command ended with status {self.exit_status}")
        return found


class Command:
    """`penstock serve`, with all of its files in a separate folder.

    Args:
        folder: the folder for the server's models and temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        repository = folder / "models"
        for model in MODELS:
            write_model(repository, model)
        self.ports = free_ports(3)
        self.output = folder / "output"
        options = [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), self.ports)]
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock", "serve", str(repository), *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": str(self._temporary)},
            )
        self.shared_memory = ""

    def triton(self) -> int | None:
        """Return the id of Triton's process; None before its supervisor has started it."""
        for pid in children(self.process.pid):
            words = _command_line(pid)
            if words[0].endswith("tritonserver"):
                (flag,) = (word for word in words if "shm-region-prefix-name=" in word)
                self.shared_memory = flag.rpartition("=")[2]
                return pid
        return None

    def resources(self) -> tuple[int, int, float]:
        """Return the supervisor's number of open files, its number of threads, and its resident memory in MiB."""
        process = Path(f"/proc/{self.process.pid}")
        pages = int((process / "statm").read_text().split()[1])
        files, threads = (len(list((process / kind).iterdir())) for kind in ("fd", "task"))
        return files, threads, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def left(self) -> list[str]:
        """Return the processes and files that the command left behind, and that do not disappear within 20 s."""
        deadline = time.monotonic() + 20
        while (found := self._left()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _left(self) -> list[str]:
        lines = {
            int(entry.name): _command_line(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
        }
        processes = [
            f"process {pid}: {words[0]}"
            for pid, words in lines.items()
            if any(str(self._folder) in word for word in words)
        ]
        files = [str(path) for path in self._temporary.iterdir()]
        regions = [str(path) for path in Path("/dev/shm").glob(f"{self.shared_memory}*")] if self.shared_memory else []
        return processes + files + regions


def _command_line(pid: int | str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]


def availability(counts: Counts, began: float, ended: float) -> dict[str, float]:
    """Return, for each model, the fraction of time windows in which it was available; see :data:`WINDOW_SECONDS`."""
    windows = int((ended - began) / WINDOW_SECONDS)
    shares = {}
    for model in MODELS:
        right, others = [0] * windows, [0] * windows
        for key, (answered, rest) in counts.timeline.items():
            number, name = key.split()
            window = int((int(number) * BIN - began) / WINDOW_SECONDS)
            if name == model and 0 <= window < windows:
                right[window] += answered
                others[window] += rest
        shares[model] = sum(bool(good) and not bad for good, bad in zip(right, others)) / windows
    return shares


def run(folder: Path, period: float, seconds: float, clients: int) -> Findings:
    """Kill a server under load.

    Args:
        folder: the folder for the server's files.
        period: the number of seconds between two kills.
        seconds: how many seconds to continue after the first right answers.
        clients: the number of clients that send requests all the time.
    """
    command = Command(folder)
    kills = 0
    try:
        urls = (f"127.0.0.1:{command.ports[0]}", f"127.0.0.1:{command.ports[1]}")
        with Traffic(*urls, clients=clients, models=MODELS, bad=0.05, abandoned=0, pause=0.02) as traffic:
            traffic.flow()
            before = command.resources()
            began = time.time()
            for number in itertools.cycle(SIGNALS):
                time.sleep(max(0.0, began + (kills + 1) * period - time.time()))
                if time.time() >= began + seconds:
                    break
                triton = command.triton()
                if triton is not None:
                    os.kill(triton, number)
                kills += 1
            ended = time.time()
            counts = traffic.stop()
        after = command.resources()
    finally:
        command.process.terminate()
        status = command.process.wait(60)
    return Findings(
        kills,
        availability(counts, began, ended),
        counts.right.total(),
        counts.failed.total(),
        counts.wrong.total(),
        (before[0], after[0]),
        (before[1], after[1]),
        (round(before[2], 1), round(after[2], 1)),
        status,
        command.left(),
    )


@click.command()
@click.option("--period", default=20.0, show_default=True, help="Seconds between two kills.")
@click.option("--minutes", default=30.0, show_default=True, help="Of the whole run.")
@click.option("--clients", default=8, show_default=True, help="That send requests all the while.")
def main(period: float, minutes: float, clients: int) -> None:
    """Kill a server again and again under load, and report the outcome of the requests."""
    with tempfile.TemporaryDirectory() as folder:
        findings = run(Path(folder), period, minutes * 60, clients)
        print(json.dumps(asdict(findings), indent=2))
        problems = findings.problems()
        print("\n".join(problems or ["nothing is wrong"]))
        if problems:
            print((Path(folder) / "output").read_text()[-3000:])
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
