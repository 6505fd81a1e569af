"""A campaign: distributes cases to supervised processes, and collects the outcomes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzzing.cases import BATCH, Cases
from fuzzing.outcomes import BAD, CRASH, HANG, MEMORY, Outcome
from fuzzing.seeds import Seeds, make_seeds
from fuzzing.settings import Settings
from fuzzing.worker import READY, Job, Report, Worker, quiet, serve

_fork = multiprocessing.get_context("fork")
# When the campaign's time is over, the cases of processes that were lost still run one by one, for at most this many seconds.
_GRACE = 60.0
_WAITING = 6
"""The maximum wall time of a case, as a multiple of its limit of processor time: on a busy machine, processes wait most of the time."""
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_KEPT = 4
"""The maximum number of cases that are stored for each distinct failure."""


@dataclass(frozen=True)
class Bounds:
    """Limits of time and memory beyond which a case fails.

    Attributes:
        seconds: the processor time that a single case may take, in seconds; a batch may take four times as much. Both are also ended when
            their wall time is six times as long as that limit.
        memory: the number of bytes that a process may hold while it runs a single case; with a batch, four times as many.
    """

    seconds: float = 10.0
    memory: int = 1 << 30


@dataclass
class Summary:
    """The outcome of a campaign.

    Attributes:
        done: the number of cases that were run.
        seconds: the time that the campaign took, including all preparations.
        counts: the number of cases by format and kind of outcome.
        failures: some cases of each distinct failure.
    """

    seed: int
    done: int = 0
    seconds: float = 0.0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        """The number of cases with an outcome in ``BAD``."""
        return sum(count for (_, kind), count in self.counts.items() if kind in BAD)

    def as_json(self) -> str:
        formats: dict[str, dict[str, int]] = {}
        for (format, kind), count in sorted(self.counts.items()):
            formats.setdefault(format, {})[kind] = count
        return json.dumps(
            {"seed": self.seed, "done": self.done, "seconds": round(self.seconds, 1), "bad": self.bad}
            | {"formats": formats, "failures": self.failures},
            indent=1,
        )


@dataclass
class _Slot:
    """A slot for a process: the current process, its job, the time at which the job started, and the processor time used before."""

    log: Path
    process: Any = None
    connection: Connection | None = None
    job: Job | None = None
    since: float | None = None
    computed: float = 0.0


class Campaign:
    """Runs cases in supervised processes: a process that dies, hangs or takes too much memory is ended, and its cases are run one by one.

    Args:
        seed: the seed of all random choices.
        formats: the formats that are fuzzed; empty: all.
        settings: the settings of the pipelines.
        bounds: the limits of a case.
        fences: whether memory is allocated between inaccessible pages; see :mod:`fuzzing.fences`.
    """

    def __init__(
        self,
        seed: int,
        formats: tuple[str, ...] = (),
        settings: Settings | None = None,
        bounds: Bounds | None = None,
        fences: bool = False,
    ) -> None:
        self._settings = settings or Settings()
        self._fences = fences
        self._bounds = bounds or Bounds()
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-fuzz-"))
        self.seeds: Seeds = _in_a_process(self._folder / "seeds.log", make_seeds)
        self.cases = Cases(self.seeds, seed, formats)
        self.summary = Summary(seed)
        self._retries: deque[Job] = deque()
        self._next = 0

    def run(
        self, count: int, processes: int, seconds: float = 0.0, tell: Callable[[Summary], None] | None = None
    ) -> Summary:
        """Run the first ``count`` cases, or as many as there is time for; return the results.

        Args:
            processes: the number of processes that run at the same time.
            seconds: the time, in seconds, after which no new cases are started; 0: no limit.
            tell: a function that is called with the results so far, from time to time.
        """
        started = time.monotonic()
        _in_a_process(self._folder / "warm.log", lambda: self._warm_up(count))
        slots = [_Slot(self._folder / f"worker{number}.log") for number in range(processes)]
        try:
            while True:
                late = time.monotonic() - started - seconds if seconds else 0.0
                if late > _GRACE:
                    self._retries.clear()
                self._give_out(slots, 0 if late > 0 else count)
                busy = [slot for slot in slots if slot.job is not None]
                if not busy:
                    break
                wait([c for slot in busy if (c := slot.connection) is not None], 0.2)
                for slot in busy:
                    self._look_after(slot)
                self.summary.seconds = time.monotonic() - started
                if tell is not None:
                    tell(self.summary)
        finally:
            for slot in slots:
                _end(slot)
        return self.summary

    def _warm_up(self, count: int) -> None:
        """Compile the kernels of the targets in one process; the other processes find them in numba's cache."""
        worker = Worker(self.cases, self.seeds, self._settings, fences=False)
        for name in {self.cases.target(batch) for batch in range(min(-(-count // BATCH), 500))}:
            worker.prepare(name)

    def _give_out(self, slots: list[_Slot], count: int) -> None:
        for slot in slots:
            if slot.job is not None:
                continue
            if self._retries:
                job = self._retries.popleft()
            elif self._next < count:
                job = Job(self._next, min(BATCH, count - self._next))
                self._next += job.count
            else:
                continue
            if slot.process is None:
                slot.connection, theirs = _fork.Pipe()
                slot.process = _fork.Process(
                    target=serve, args=(theirs, slot.log, self.cases, self.seeds, self._settings, self._fences)
                )
                slot.process.start()
                theirs.close()
            assert slot.connection is not None
            slot.job, slot.since = job, None
            with suppress(BrokenPipeError):
                slot.connection.send(job)

    def _look_after(self, slot: _Slot) -> None:
        assert slot.connection is not None
        assert slot.job is not None
        factor = 1 if slot.job.count == 1 else 4
        try:
            while slot.job is not None and slot.connection.poll():
                message = slot.connection.recv()
                if message == READY:
                    slot.since, slot.computed = time.monotonic(), _computed(slot.process.pid)
                elif message.peak > self._bounds.memory:
                    # The next job gets a new process, because this one may not release its memory.
                    self._lost(slot, Outcome(MEMORY, f"the process held {message.peak >> 20} MiB", "at the end"))
                    return
                else:
                    self._take(slot.job, message)
                    slot.job = None
        except (EOFError, ConnectionResetError):
            self._lost(slot, _how(slot))
            return
        if slot.job is None:
            return
        target = self.cases.target(slot.job.batch)
        seconds = self._bounds.seconds * factor
        if slot.since is None:
            took = computed = 0.0
        else:
            took, computed = time.monotonic() - slot.since, _computed(slot.process.pid) - slot.computed
        if computed > seconds or took > seconds * _WAITING:
            self._lost(slot, Outcome(HANG, f"no end after {took:.0f} s, {computed:.0f} s of processor time", target))
        elif _held(slot.process.pid) > self._bounds.memory * 4:
            self._lost(slot, Outcome(MEMORY, "the process was ended for the memory that it held", target))

    def _take(self, job: Job, report: Report) -> None:
        self.summary.done += job.count
        self.summary.counts.update(report.counts)
        for number, format, outcome in report.bad:
            self._keep(number, format, outcome)

    def _lost(self, slot: _Slot, outcome: Outcome) -> None:
        """Handle a process that is gone or must be ended: end it, and queue its cases to be run one by one."""
        job = slot.job
        _end(slot)
        if job is not None:
            self._failed(job, outcome)

    def _failed(self, job: Job, outcome: Outcome) -> None:
        if job.count > 1:
            self._retries.extend(Job(number, 1) for number in range(job.first, job.first + job.count))
            return
        format = self.cases.case(job.first).format
        self.summary.done += 1
        self.summary.counts[format, outcome.kind] += 1
        self._keep(job.first, format, outcome)

    def _keep(self, number: int, format: str, outcome: Outcome) -> None:
        target = self.cases.target(number // BATCH)
        kept = self.summary.failures.setdefault(f"{outcome.kind} {format}: {outcome.place}", [])
        if len(kept) < _MOST_KEPT:
            content = self.cases.case(number).content
            files = content if isinstance(content, dict) else {"": content}
            shown = {name: data.hex() for name, data in files.items() if len(data) < 20_000}
            kept.append({"case": number, "target": target, "message": outcome.message, "files": shown})


def _in_a_process(log: Path, make: Callable[[], Any]) -> Any:
    """Return the result of a function that is called in another process: libraries may start threads, and a process with threads must not
    fork.
    """
    ours, theirs = _fork.Pipe()

    def child() -> None:
        quiet(log)
        theirs.send(make())
        os._exit(0)

    process = _fork.Process(target=child)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise RuntimeError(f"The fuzzing could not begin: {log.read_text(errors='replace')[-3000:]}") from None
    finally:
        process.join()


def _end(slot: _Slot) -> None:
    if slot.process is not None:
        with suppress(ProcessLookupError):
            os.kill(slot.process.pid, signal.SIGKILL)
        slot.process.join()
    if slot.connection is not None:
        slot.connection.close()
    slot.process = slot.connection = slot.job = slot.since = None


def _how(slot: _Slot) -> Outcome:
    """Return the outcome that describes how a process died, and where."""
    slot.process.join(10)
    code = slot.process.exitcode
    name = signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"
    text = slot.log.read_text(errors="replace") if slot.log.exists() else ""
    lines = [line.rpartition("/")[2] for line in text.splitlines() if line.startswith("  File ")]
    place = " < ".join(line.replace('", line ', ":") for line in lines[:3])
    return Outcome(
        CRASH, f"{name}; the last that it wrote: {text[-300:] if not lines else text[:300]}", f"{name} {place}"
    )


def _computed(process_id: int) -> float:
    """Return the processor time, in seconds, that a process has used, including that of children for which it has waited."""
    try:
        # The name, in parentheses, may contain spaces.
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # These are fields 14 to 17 of proc(5); the first two fields, id and name, are not in the list.
    return sum(map(int, fields[11:15])) / _TICKS


def _held(process_id: int) -> int:
    """Return the bytes of memory that a process holds."""
    try:
        return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
