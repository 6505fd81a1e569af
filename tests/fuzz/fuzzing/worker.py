"""A process that runs cases and may crash."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing.cases import BATCH, Cases
from fuzzing.fences import put_up
from fuzzing.outcomes import BAD, Outcome
from fuzzing.seeds import Seeds
from fuzzing.settings import Settings
from fuzzing.targets import ALL_TARGETS, running

_SLICE = {target.name: target.files_per_run for target in ALL_TARGETS}


class Job(NamedTuple):
    """Consecutive cases to run: a batch, or one of its cases alone."""

    first: int
    count: int

    @property
    def batch(self) -> int:
        """The number of the batch to which the cases belong."""
        return self.first // BATCH


class Report(NamedTuple):
    """The outcome of a job.

    Attributes:
        counts: the number of cases by format and kind of outcome.
        bad: the number, format and outcome of each case with a bad outcome.
        peak: the maximum number of bytes that the process has held.
    """

    counts: dict[tuple[str, str], int]
    bad: list[tuple[int, str, Outcome]]
    peak: int


READY = "ready"
"""The message that is sent when a job's target is ready and the first case is about to run."""


class Worker:
    """Runs jobs, with a pipeline for each target that the jobs need."""

    def __init__(self, cases: Cases, seeds: Seeds, settings: Settings, fences: bool) -> None:
        self._cases = cases
        self._seeds = seeds
        self._settings = settings
        self._fences = fences
        if fences:
            put_up()
        self._running: dict[str, Any] = {}

    def prepare(self, name: str) -> Any:
        """Return the running target ``name``; start it if necessary."""
        if name not in self._running:
            self._running[name] = running(name, self._seeds, self._settings, self._fences)
        return self._running[name]

    def run(self, job: Job, target: Any) -> Report:
        counts: Counter[tuple[str, str]] = Counter()
        bad = []
        _forget_peak()
        rng = self._cases.rng(job.batch)
        step = _SLICE[target.target.name]
        for start in range(job.first, job.first + job.count, step):
            numbers = range(start, min(start + step, job.first + job.count))
            cases = [self._cases.case(number) for number in numbers]
            for number, case, outcome in zip(numbers, cases, target.run(rng, [case.content for case in cases])):
                counts[case.format, outcome.kind] += 1
                if outcome.kind in BAD:
                    bad.append((number, case.format, outcome))
        return Report(dict(counts), bad, _peak())


def _forget_peak() -> None:
    """Reset Linux's record of this process's peak memory, if that is permitted."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def serve(connection: Connection, log: Path, cases: Cases, seeds: Seeds, settings: Settings, fences: bool) -> None:
    """Run the jobs that arrive over a connection, until None arrives, and send a report of each."""
    quiet(log)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker = Worker(cases, seeds, settings, fences)
    while True:
        job: Job | None = connection.recv()
        if job is None:
            os._exit(0)
        os.ftruncate(2, 0)
        target = worker.prepare(cases.target(job.batch))
        connection.send(READY)
        connection.send(worker.run(job, target))


def quiet(log: Path) -> None:
    """Redirect the output of libraries to a file, to which the stack is also written if the process dies."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable()
