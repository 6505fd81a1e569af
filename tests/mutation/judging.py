"""Judges mutants by one test file: collects the file once, and runs its tests in forks.

In a first fork, all tests run, and each test's functions are recorded. Then each mutant is judged in a separate fork: the function's code
is replaced, and the tests that reach the function run, the fastest first, until one fails.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import json
import mmap
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from loading import MUTANT
from mutants import MARKS, REACHED

MAX_SECONDS = 30.0
"""The limit on the total time of the tests chosen for a mutant, as measured with unchanged code. At least one test is chosen."""
MIN_SECONDS = 30.0
"""The least time limit for a mutant's tests. The limit is ten times their time with unchanged code if that is longer; a mutant
whose tests exceed it counts as killed.
"""
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Change:
    """One changed function.

    Attributes:
        module, function, number: the names and number that identify the mutant; see `mutants.mutate`.
        path: the path of the module's source.
        code: the changed function's code, compiled as in its module.
        noting: the code of the unchanged function, which first records that the function was reached; see `mutants.note`.
    """

    module: str
    function: str
    number: int
    path: Path
    code: CodeType
    noting: CodeType


@dataclass(frozen=True)
class Verdict:
    """The result of running tests on a mutant.

    Attributes:
        reached: the number of tests that reach the mutant's function.
        killer: the test that failed; after a crash or a timeout, the first test that ran; empty if no test failed.
    """

    reached: int
    killer: str = ""


class Judge:
    """A pytest plugin that runs the collected tests for each change, rather than once.

    Args:
        changes: the changes, each of a different function.
        folder: an empty folder for the results that forks write.
        baseline_seconds: the time limit of the run with unchanged code; tests that do not run within it judge no mutants.
    """

    def __init__(self, changes: Sequence[Change], folder: Path, baseline_seconds: float) -> None:
        self._changes, self._folder, self._baseline_seconds = changes, folder, baseline_seconds
        self._marks = mmap.mmap(-1, max(len(changes), 1))
        self._passed = True

    @property
    def verdicts(self) -> Path:
        """The file of verdicts, with a line of JSON for each change judged so far."""
        return self._folder / "verdicts"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed = self._passed and not report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # `gc.get_objects`, which finds the functions, leaves out frozen objects, and `conftest.py` calls `gc.freeze`.
        gc.unfreeze()
        found = [_loaded(change) for change in self._changes]
        items = {item.nodeid: item for item in session.items}
        tests = self._baseline(items, found)
        with self.verdicts.open("w") as verdicts:
            for number, change in enumerate(self._changes):
                reaching = sorted((seconds, name) for name, (seconds, reached) in tests.items() if number in reached)
                verdict = self._judge(change, found[number], items, reaching) if found[number] else Verdict(0)
                verdicts.write(json.dumps([number, verdict.reached, verdict.killer]) + "\n")
                verdicts.flush()
        return True

    def _baseline(
        self, items: dict[str, pytest.Item], found: Sequence[list[FunctionType]]
    ) -> dict[str, tuple[float, list[int]]]:
        """Run all tests on unchanged code; return the seconds of each test that passes, and the numbers of the changes it reaches."""
        lines = self._folder / "baseline"

        def run() -> None:
            setattr(builtins, MARKS, self._marks)
            for change, functions in zip(self._changes, found):
                for function in functions:
                    function.__code__ = change.noting
            with lines.open("w") as file:
                order = list(items.values())
                for item, following in zip(order, [*order[1:], None]):
                    self._marks[:] = bytes(len(self._marks))
                    began = time.monotonic()
                    self._run(item, following)
                    reached = [number for number, byte in enumerate(self._marks[: len(self._changes)]) if byte]
                    if self._passed and reached:
                        file.write(json.dumps([item.nodeid, time.monotonic() - began, reached]) + "\n")
                        file.flush()

        _forked(run, self._baseline_seconds)
        written = lines.read_text().splitlines() if lines.exists() else []
        return {name: (seconds, reached) for name, seconds, reached in map(json.loads, written)}

    def _judge(
        self,
        change: Change,
        functions: Sequence[FunctionType],
        items: dict[str, pytest.Item],
        reaching: Sequence[tuple[float, str]],
    ) -> Verdict:
        chosen: list[str] = []
        total = 0.0
        for seconds, name in reaching:
            if chosen and total + seconds > MAX_SECONDS:
                break
            chosen.append(name)
            total += seconds
        if not chosen:
            return Verdict(0)
        failed = self._folder / "failed"
        failed.unlink(missing_ok=True)

        def run() -> None:
            setattr(builtins, REACHED, lambda: None)
            for function in functions:
                function.__code__ = change.code
            # Processes that tests start load the change as well.
            os.environ[MUTANT] = json.dumps(
                {
                    "module": change.module,
                    "function": change.function,
                    "number": change.number,
                    "reached": str(self._folder / "reached"),
                }
            )
            for name, following in zip(chosen, [*chosen[1:], None]):
                self._run(items[name], items[following] if following else None)
                if not self._passed:
                    failed.write_text(name)
                    return

        ended = _forked(run, max(MIN_SECONDS, 10 * total))
        # A crash or a timeout distinguishes the mutant from the unchanged code as well as a failed test.
        killer = failed.read_text() if failed.exists() else "" if ended else chosen[0]
        return Verdict(len(reaching), killer)

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        self._passed = True
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _loaded(change: Change) -> list[FunctionType]:
    """Import a change's module; return all function objects made of its function's code, whatever decorates the function."""
    try:
        importlib.import_module(change.module)
    except ImportError:
        return []
    place = str(change.path), change.noting.co_firstlineno, change.noting.co_name
    return [
        one
        for one in gc.get_objects()
        if type(one) is FunctionType
        and (one.__code__.co_filename, one.__code__.co_firstlineno, one.__code__.co_name) == place
        and one.__code__.co_freevars == change.code.co_freevars
    ]


def _forked(run: Callable[[], None], seconds: float) -> bool:
    """Run a function in a fork, and then kill all its processes; return whether it ended in time and without a crash."""
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setsid()
            run()
            status = 0
        finally:
            os._exit(status)
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                child_status = os.waitstatus_to_exitcode(status)
                return child_status == 0
            time.sleep(_POLL_SECONDS)
        return False
    finally:
        _kill_group(child)


def _kill_group(child: int) -> None:
    """Kill a fork and the processes that it started, if any are left."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        return
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        return
