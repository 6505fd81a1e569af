"""Load on a real server, with every answer checked: ``python tests/serving/traffic.py --requests 1000000``.

The clients run in separate processes (`traffic_process.py`), so that they take little time from the server, and none from the
process that started them. The models are those of `traffic_models.py`, served from a temporary repository, or by the server at
``--http`` and ``--grpc``, which may be a proxy. The exit status is 1 if any request got a wrong answer or a wrong error; requests that
found no server are counted separately ("away"), and so are the deaths of the server.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from traffic_models import CACHED, write_repository
from traffic_process import Counts, Settings
from traffic_requests import ASKED

from penstock.serving.control import Control, NoAnswer, ServerError
from penstock.serving.server import LocalServer

HERE = Path(__file__).parent

CACHE_BYTES = 16 << 20
"""The size of the response cache in bytes, if there is one."""


class Traffic:
    """Clients that send requests from other processes.

    A context manager: the requests begin when it is entered, and end when it is left.

    Args:
        http_url, grpc_url: the server's addresses for HTTP and gRPC.
        clients: the number of clients in all processes together.
        processes: the number of processes among which the clients are divided.
        requests: the number of requests of all processes together; 0: send requests until :meth:`stop` is called.
        settings: further attributes of `Settings`, by name.
    """

    def __init__(
        self,
        http_url: str,
        grpc_url: str,
        *,
        clients: int = 32,
        processes: int = 1,
        requests: int = 0,
        **settings: Any,
    ) -> None:
        self._settings = [
            Settings(
                http_url,
                grpc_url,
                clients=len(range(number, clients, processes)),
                requests=len(range(number, requests, processes)),
                number=number,
                processes=processes,
                **settings,
            )
            for number in range(processes)
        ]
        self._counts = Counts()
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []
        self._began = 0.0
        self._ended = 0.0

    def __enter__(self) -> Traffic:
        self._began = time.time()
        for settings in self._settings:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "traffic_process.py"), json.dumps(dataclasses.asdict(settings))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            reader = threading.Thread(target=self._read, args=(process,), daemon=True)
            reader.start()
            self._processes.append(process)
            self._readers.append(reader)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> Counts:
        """Let the requests in flight finish, and return the counts of all requests."""
        for process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        return self.wait()

    def wait(self) -> Counts:
        """Wait until all requests are sent and answered, and return the counts.

        Raises:
            RuntimeError: a process of clients failed.
        """
        for reader in self._readers:
            reader.join()
        codes = [process.wait() for process in self._processes]
        for process in self._processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()
        self._ended = self._ended or time.time()
        if any(codes):
            raise RuntimeError(f"processes of clients ended with {codes}")
        return self._counts

    def flow(self, right: int = 5, timeout: float = 300.0) -> None:
        """Wait until each model has given at least ``right`` right answers.

        Raises:
            TimeoutError: this takes longer than ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while any(self.counts().right[model] < right for model in self._settings[0].models):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no right answers: {self.counts().mistakes}")
            time.sleep(0.1)

    @property
    def running(self) -> bool:
        """Whether requests are still being sent."""
        return any(reader.is_alive() for reader in self._readers)

    @property
    def seconds(self) -> float:
        """The seconds from the beginning to the end; if there is no end yet, until now."""
        return (self._ended or time.time()) - self._began

    def counts(self) -> Counts:
        """Return a copy of the counts so far."""
        with self._lock:
            return Counts().add(self._counts)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._lock:
                self._counts.add(Counts.of_json(line))


def one_by_one(http_url: str, grpc_url: str, models: tuple[str, ...] = ASKED, rounds: int = 6, seed: int = 0) -> Counts:
    """Send each model a few requests of one sample, one after the other.

    This detects an answer that is sent to the next request: in batches of several requests, the numbers of samples would differ, which
    would be noticed in any case.
    """
    with Traffic(
        http_url,
        grpc_url,
        clients=1,
        requests=rounds * len(models),
        bad=0,
        abandoned=0,
        models=models,
        single=True,
        seed=seed,
    ) as traffic:
        return traffic.wait()


# -- reloads and deaths while traffic runs ------------------------------------------------------------------------------


class Reloads:
    """Reloads one model after the other while traffic runs, as if the model's file had been edited.

    Args:
        control: the model control interface of the server, whose mode must be ``explicit``.
        repository: the repository; time stamps of its files are updated, so that Triton really loads the models again.
        every: the number of seconds between two reloads.

    Attributes:
        done: the number of reloads.
        refused: the errors that the server returned, except while it was down.
    """

    def __init__(self, control: Control, repository: Path, every: float) -> None:
        self.done = 0
        self.refused: list[str] = []
        self._control, self._repository, self._every = control, repository, every
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._reload, daemon=True)

    def __enter__(self) -> Reloads:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _reload(self) -> None:
        files = itertools.cycle(sorted(self._repository.glob("*/1/pipeline.py")))
        while not self._stopped.wait(self._every):
            file = next(files)
            file.touch()
            try:
                self._control.load(file.parent.parent.name)
                self.done += 1
            except NoAnswer:
                continue
            except ServerError as error:
                self.refused.append(str(error))


class Deaths:
    """Counts how often a server's Triton dies; pass this object as the server's ``report``."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    @property
    def count(self) -> int:
        """How often Triton has died."""
        return sum(line.startswith("Triton ") and "it is started again" in line for line in self.lines)


# -- a server's processes and memory -------------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    """Return the ids of all living descendants of a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process may end while it is inspected.
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text()
                # The format is `pid (name) state parent ...`; the name may contain parentheses, so the last one ends it.
                state, parent = text[text.rindex(")") + 2 :].split()[:2]
                if state not in "ZX":
                    parents.setdefault(int(parent), []).append(int(entry.name))
    found = list(parents.get(pid, []))
    for one in found:
        found.extend(parents.get(one, []))
    return found


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process and its descendants, in MiB."""
    pages = 0
    for one in (pid, *children(pid)):
        with contextlib.suppress(OSError):
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Memory:
    """Watches the memory of a server while traffic runs."""

    def __init__(self, pid: int, every: float = 1.0) -> None:
        self._pid, self._every = pid, every
        self.samples: list[tuple[float, float]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(self._every):
            self.samples.append((time.time(), resident_mib(self._pid)))

    def around(self, share: float) -> float:
        """Return the median of the measurements, in MiB, around a point of time; ``share``: the point as a fraction of the duration."""
        middle, width = round(share * (len(self.samples) - 1)), max(1, len(self.samples) // 20)
        part = sorted(mib for _, mib in self.samples[max(0, middle - width) : middle + width + 1])
        return part[len(part) // 2]


# -- the summary ---------------------------------------------------------------------------------------------------------


def quantile_ms(waited: dict[str, int], share: float) -> float:
    """Return the time in milliseconds within which a fraction ``share`` of the right answers arrived."""
    rest = share * sum(waited.values())
    for number in sorted(map(int, waited)):
        rest -= waited[str(number)]
        if rest <= 0:
            return 2 ** (number / 4)
    return math.nan


def verdict(counts: Counts) -> dict[str, Any]:
    """Return whether each request got the right answer, and what went wrong."""
    return {
        "requests": counts.sent,
        "right": counts.right.total(),
        "wrong": counts.wrong.total(),
        "failed": dict(counts.failed),
        "misjudged": dict(counts.misjudged),
        "accepted": dict(counts.accepted),
        "away": counts.away.total(),
        "spotless": counts.spotless,
        "honest": counts.honest,
        "mistakes": counts.mistakes,
    }


def summary_of(counts: Counts) -> dict[str, Any]:
    """Return the report of a run, for people and for programs."""
    return {
        **verdict(counts),
        "seconds": round(counts.seconds, 2),
        "right_per_second": round(counts.right.total() / counts.seconds, 1),
        "refused": counts.refused.total(),
        "abandoned": counts.abandoned.total(),
        "p50_ms": round(quantile_ms(counts.waited, 0.5), 2),
        "p99_ms": round(quantile_ms(counts.waited, 0.99), 2),
        "right_by_model": dict(sorted(counts.right.items())),
        "refused_by_kind": dict(sorted(counts.refused.items())),
    }


@contextlib.contextmanager
def _served(
    folder: Path, environment: Path | None, instances: int, delay_us: int, cached: bool, deaths: Deaths
) -> Iterator[LocalServer]:
    repository = write_repository(folder, instances, delay_us, cached)
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    if cached:
        flags.append(f"--cache-config=local,size={CACHE_BYTES}")
    with LocalServer(
        repository, environment=environment, allow_failures=True, flags=flags, restarts=sys.maxsize, report=deaths
    ) as server:
        yield server


def _run(console: Console, title: str, traffic: Traffic, requests: int) -> dict[str, Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=console) as progress, traffic:
        task = progress.add_task(title, total=requests or None, state="")
        while traffic.running:
            time.sleep(0.5)
            counts = traffic.counts()
            state = (
                f"{counts.sent / traffic.seconds:.0f}/s, wrong: {counts.wrong.total()}, failed: {counts.failed.total()}"
            )
            progress.update(task, completed=counts.sent, state=state)
    return summary_of(traffic.wait())


@click.command()
@click.option("--requests", default=20_000, show_default=True, help="To send, the clean ones not counted.")
@click.option("--clean", default=0, help="Requests of a run before, without bad ones, to compare throughput with.")
@click.option("--seconds", default=0.0, help="Stop after this time, whatever was sent.")
@click.option("--clients", default=32, show_default=True, help="That ask at the same time.")
@click.option("--processes", default=1, show_default=True, help="That the clients are spread over.")
@click.option("--instances", default=1, show_default=True, help="Of each model.")
@click.option("--delay-us", default=1000, show_default=True, help="How long requests wait for others to share a batch.")
@click.option("--bad", default=0.1, show_default=True, help="Share of bad requests.")
@click.option("--abandoned", default=0.02, show_default=True, help="Share of good HTTP requests that are given up.")
@click.option("--cancelled", default=0.0, show_default=True, help="Of good gRPC requests; Triton 2.51 may die of them.")
@click.option("--deadlines", default=0.0, show_default=True, help="The same, with deadlines of 1.5 to 5 ms.")
@click.option("--reload-every", default=0.0, help="Seconds between reloads of a model; 0 for none.")
@click.option("--cached", is_flag=True, help="Also ask a model whose responses Triton caches.")
@click.option("--seed", default=0, help="Of the random numbers; parts of one run take different ones.")
@click.option("--environment", type=click.Path(path_type=Path), help="To serve from; found by itself if not given.")
@click.option("--http", "http_url", help="A server that runs already, with the models of traffic_models.py.")
@click.option("--grpc", "grpc_url", help="Its port for gRPC.")
@click.option("--repository", type=click.Path(path_type=Path), help="Its models, to touch before they are reloaded.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="File for the summary as JSON.")
def command(
    requests: int,
    clean: int,
    seconds: float,
    clients: int,
    processes: int,
    instances: int,
    delay_us: int,
    bad: float,
    abandoned: float,
    cancelled: float,
    deadlines: float,
    reload_every: float,
    cached: bool,
    seed: int,
    environment: Path | None,
    http_url: str | None,
    grpc_url: str | None,
    repository: Path | None,
    output: Path | None,
) -> None:
    """Send requests to a server, and check each answer."""
    console = Console(stderr=True)
    spread: dict[str, Any] = {
        "clients": clients,
        "processes": processes,
        "abandoned": abandoned,
        "cancelled": cancelled,
        "deadlines": deadlines,
        "models": (*ASKED, CACHED) if cached else ASKED,
    }
    deaths = Deaths()
    with contextlib.ExitStack() as stack:
        summary: dict[str, Any] = {"seed": seed, "clients": clients, "processes": processes, "instances": instances}
        if http_url is None or grpc_url is None:
            repository = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(_served(repository, environment, instances, delay_us, cached, deaths))
            http_url, grpc_url = server.http_url, server.grpc_url
            summary["models_that_failed"] = [str(model) for model in server.models() if not model.ready]
            memory = stack.enter_context(Memory(server.pid))
        else:
            memory = None
        summary["alone_before"] = verdict(one_by_one(http_url, grpc_url, seed=seed + 200))
        if clean:
            before = Traffic(http_url, grpc_url, requests=clean, bad=0.0, seed=seed + 100, **spread)
            summary["clean"] = _run(console, "clean", before, clean)
        traffic = Traffic(http_url, grpc_url, requests=requests, seconds=seconds, bad=bad, seed=seed, **spread)
        with contextlib.ExitStack() as meanwhile:
            if reload_every:
                assert repository is not None, "--reload-every takes --repository, too"
                reloads = meanwhile.enter_context(Reloads(Control(http_url, {}), repository, reload_every))
            summary["mixed"] = _run(console, "mixed", traffic, requests)
        if reload_every:
            summary["reloads"] = {"done": reloads.done, "refused": reloads.refused}
        summary["deaths"] = deaths.count
        summary["alone_after"] = verdict(one_by_one(http_url, grpc_url, seed=seed + 300))
        if clean:
            summary["good_throughput_kept"] = round(
                summary["mixed"]["right_per_second"] / summary["clean"]["right_per_second"], 3
            )
        if memory is not None:
            summary["resident_mib"] = {
                f"{share:.0%}": round(memory.around(share), 1) for share in (0.05, 0.1, 0.25, 0.5, 0.75, 1)
            }
    text = json.dumps(summary, indent=2)
    print(text)
    if output is not None:
        output.write_text(text)
    parts = [summary[part] for part in ("alone_before", "clean", "mixed", "alone_after") if part in summary]
    # Requests may have found no server only if this run killed it or reloaded models.
    wanted = "honest" if deaths.count or reload_every else "spotless"
    sys.exit(not all(part[wanted] for part in parts))


if __name__ == "__main__":
    command()
