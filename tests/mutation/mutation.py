"""Mutation testing: changes functions of the package, one at a time, and runs the nearest tests, which should fail.

Takes a sample of functions, the same for each seed, and one mutant of each. The nearest tests are those that reach the
function, as a run of all files shows (``reach.py``): first those of files that are named after its module, call or
import it, then those that reach few other functions. Where no test reaches it, whole files that import it run. The
first failure ends a mutant's tests. Functions that numba compiles ahead are skipped: a changed source would not be what
runs.

    make mutate ARGS="--functions 20 --seed 3"
    make mutate ARGS="--only penstock.storage.remote"
    make mutate ARGS="--again"      # those of the last time that were not killed, and their results in the same file
    make mutate ARGS="--no-trace"   # with what is known about tests already
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from forks import ROOT, in_processes, load_libraries, run_pytest
from loading import MUTANT
from mutants import count_mutants, describe
from reach import Reach, Test, module_functions, package_modules, test_files, trace

RESULTS = ROOT / "build" / "mutation.jsonl"
MAX_TESTS = 300
MAX_SECONDS = 30.0
"""The limit of a mutant's tests, in seconds that they took without it."""
MAX_FILES = 3
"""The number of files to run where no test is known to reach the function."""
MIN_SECONDS = 240.0
"""A mutant whose tests take longer than this, and than ten times their time without it, counts as killed."""
CERTAIN_SECONDS = 1.0
KILLED, SURVIVED, NOT_REACHED, NO_TESTS = "killed", "survived", "not reached", "no tests"
NOT_JUDGED = "not judged"
"""The outcome where tests fail or take too long without the mutant, too, so that they show nothing about it."""
# Not worth a test: representations for people, and examples.
_NOT_SAMPLED = re.compile(r"penstock\.examples|__repr__|__str__|_repr_html_")


@dataclass(frozen=True)
class Case:
    """One mutant of one function, and its outcome."""

    module: str
    function: str
    number: int
    line: int
    before: str
    after: str
    outcome: str = ""
    tests: tuple[str, ...] = ()

    def __str__(self) -> str:
        path = self.module.removeprefix("penstock.").replace(".", "/")
        return (
            f"{path}.py:{self.line} {self.function}: `{self.before.splitlines()[0]}` -> `{self.after.splitlines()[0]}`"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=300, help="how many to sample (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (%(default)s)")
    parser.add_argument("--only", default="", help="modules whose names begin with this; all of their functions")
    parser.add_argument("--again", action="store_true", help="what survived the last time, in place of a sample")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after this time")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(%(default)s)")
    parser.add_argument(
        "--no-trace", action="store_true", help="do not run files of tests that have changed since they were traced"
    )
    arguments = parser.parse_args()
    done: list[Case] = []
    if arguments.again:
        done = [case for case in _last_results() if case.outcome == KILLED]
        cases = [case for case in _last_results() if case.outcome != KILLED]
    else:
        cases = sample(arguments.functions, arguments.seed, arguments.only)
    planned = len(done) + len(cases)
    load_libraries()
    if not arguments.no_trace:
        trace(test_files(), arguments.processes)
    _reach()
    until = time.monotonic() + 60 * arguments.minutes
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w") as file:
        file.writelines(json.dumps(asdict(case)) + "\n" for case in done)
        for case in in_processes(functools.partial(_judge_before, until), cases, arguments.processes):
            if case is None:
                continue
            done.append(case)
            print(f"{case.outcome:12} {case}", flush=True)
            file.write(json.dumps(asdict(case)) + "\n")
            file.flush()
    print(summary(done, planned, arguments.seed))


def sample(count: int, seed: int, only: str = "") -> list[Case]:
    """Return a mutant of each of ``count`` functions, or of all in modules whose names begin with ``only``."""
    found = [
        (module, name, function)
        for module in package_modules()
        if module.startswith(only)
        for name, function in dict(module_functions(module)).items()
        if not _NOT_SAMPLED.search(f"{module}.{name}")
    ]
    if not only:
        random.Random(seed).shuffle(found)
    cases = []
    for module, name, function in found:
        if len(cases) == count and not only:
            break
        if changes := count_mutants(function):
            number = random.Random(f"{seed} {module} {name}").randrange(changes)
            cases.append(Case(module, name, number, **asdict(describe(function, number))))
    return cases


def judge(case: Case) -> Case:
    """Run the tests nearest to a mutant until one fails."""
    tests, seconds = nearest(case.module, case.function)
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder, "reached")
        mutant = {MUTANT: json.dumps({**asdict(case), "reached": str(mark)})}
        for arguments in filter(None, (tests, _sweeps(case.module))):
            limit = max(MIN_SECONDS, 10 * seconds)
            failures = _Failures(Path(folder, "failed"))
            status = run_pytest(["-q", "-x", *arguments], mutant, limit, [failures])
            if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                continue
            failed = failures.first() or arguments
            passes = _is_certain(failed) or run_pytest(["-q", "-x", *failed], {}, limit) == pytest.ExitCode.OK
            return _with(case, KILLED if passes else NOT_JUDGED, failed)
        if not tests:
            return _with(case, NO_TESTS)
        return _with(case, SURVIVED if mark.exists() else NOT_REACHED, tests)


def nearest(module: str, function: str) -> tuple[list[str], float]:
    """Return the tests, or files of tests, that are nearest to a function, best first, and the seconds that they take.

    An empty list if there are none.
    """
    near = nearness(module)
    reaching = _reach().tests(f"{module}:{function}")
    chosen: list[Test] = []
    seconds = 0.0
    for test in sorted(reaching, key=lambda test: (-near.get(test.file, 0), test.breadth + 1000 * test.seconds)):
        if len(chosen) == MAX_TESTS:
            break
        if seconds + test.seconds <= MAX_SECONDS or not chosen:
            chosen.append(test)
            seconds += test.seconds
    if chosen:
        # A file's tests follow each other, as they share fixtures.
        files = list(dict.fromkeys(test.file for test in chosen))
        return [test.name for file in files for test in chosen if test.file == file], seconds
    importing = _reach().importing(f"{module}:{function}")
    return sorted(near, key=lambda file: (file not in importing, -near[file]))[:MAX_FILES], 0.0


@functools.cache
def nearness(module: str) -> dict[str, int]:
    """Return how near files of tests are to a module, by their names and imports; without those that are far."""
    name = module.rpartition(".")[2]
    stem = name.strip("_")
    folders = [part.strip("_") for part in module.split(".")[1:-1]]
    scores: dict[str, int] = {}
    for file, (path, text) in _test_files().items():
        parts = path.relative_to(ROOT / "tests").parts[:-1]
        score = 8 * (path.stem == f"test_{stem}") + 4 * (f"_{stem}_" in f"_{path.stem}_")
        score += 6 * bool(re.search(rf"\b{re.escape(module)}\b", text)) + 3 * _imports_name(text, module)
        score += 4 * (f"fn.{name}(" in text or f".{name}(" in text)
        score += 4 * any(path.stem == f"test_{folder}" for folder in folders)
        if score or parts[:1] == tuple(folders[:1]):
            score += sum(own == other for own, other in zip(parts, folders))
            # Of equally near ones, the fastest: servers last.
            scores[file] = 10 * score - len(text) // 5_000 - 20 * ("LocalServer(" in text)
    return scores


def _is_certain(failed: Sequence[str]) -> bool:
    """Return whether a test certainly passes without a mutant: it passed when traced and is fast, so a busy machine
    does not fail it.
    """
    return len(failed) == 1 and _reach().seconds(failed[0]) < CERTAIN_SECONDS


class _Failures:
    """Plugin of pytest that writes the name of the first test that fails."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._path.exists():
            self._path.write_text(report.nodeid)

    def first(self) -> list[str]:
        """Return the name, if a test failed."""
        return [self._path.read_text()] if self._path.exists() else []


def _judge_before(until: float, case: Case) -> Case | None:
    return judge(case) if time.monotonic() < until else None


@functools.cache
def _reach() -> Reach:
    return Reach.known()


def summary(cases: list[Case], planned: int, seed: int) -> str:
    """Return the numbers, and the mutants that were not killed, in Markdown."""
    outcomes = Counter(case.outcome for case in cases)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    share = 100 * outcomes[KILLED] / max(len(cases), 1)
    lines = [
        f"{datetime.date.today()}, seed {seed}: {len(cases)} of {planned} mutants: {counts}; {share:.0f} % killed.",
        "",
    ]
    return "\n".join(lines + [f"- {case.outcome}: {case}" for case in cases if case.outcome != KILLED])


def _sweeps(module: str) -> list[str]:
    """Return pytest's arguments for the sweeps over a module's operators; none without operators."""
    source = package_modules()[module].read_text()
    names = re.findall(r'^    schema = Schema\(\s*name="(?:\w+__)?(\w+)"', source, re.M)
    return ["tests/sweeps", "-k", " or ".join(names)] if names else []


def _imports_name(text: str, module: str) -> bool:
    package, _, name = module.rpartition(".")
    return bool(re.search(rf"from {re.escape(package)} import [^\n]*\b{re.escape(name)}\b", text))


@functools.cache
def _test_files() -> dict[str, tuple[Path, str]]:
    return {file: (ROOT / file, (ROOT / file).read_text()) for file in test_files()}


def _with(case: Case, outcome: str, tests: Sequence[str] = ()) -> Case:
    return Case(**{**asdict(case), "outcome": outcome, "tests": tuple(tests)})


def _last_results() -> Iterator[Case]:
    for line in RESULTS.read_text().splitlines():
        yield Case(**json.loads(line))


if __name__ == "__main__":
    main()
