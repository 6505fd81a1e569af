"""Mutation testing: changes functions of the package, one at a time, and runs the nearest test files, which should fail.

A sample of functions, determined by the seed, is chosen, and one mutant of each. The nearest test files are those that mention the
function, are named after its module, or call or import the module. All mutants near the same file are judged together
(``judging.py``): the file is collected once, and its tests run once on unchanged code, to record which tests reach which functions.
Mutants that survive are then judged by their next-nearest file. Functions that numba compiles ahead of time are skipped, as the
compiled code, rather than the changed source, would run.

Results are added to those of earlier runs, so that an interrupted run can be continued.

    make mutate ARGS="--functions 20 --seed 3"
    make mutate ARGS="--only penstock.storage.remote"
    make mutate ARGS="--again --files 8"   # judges surviving mutants again, by more files
"""

from __future__ import annotations

import argparse
import ast
import datetime
import functools
import hashlib
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from forks import ROOT, in_processes, load_libraries, run_pytest
from judging import Change, Judge
from mutants import code_of, count_mutants, describe, mutate, note
from sources import module_functions, package_modules, test_files

RESULTS = ROOT / "build" / "mutation.jsonl"
FILES = 3
"""The default number of nearest test files that judge a mutant."""
BASELINE_SECONDS = 240.0
"""The time limit of the run of a file's tests on unchanged code; tests that do not run within it judge no mutants."""
MAX_FILE_SECONDS = 3600.0
KILLED, SURVIVED, NOT_REACHED = "killed", "survived", "not reached"
# Modules with this import generate kernels' code, which is compiled before the tests run, so a change would have no effect.
_GENERATES_CODE = "penstock.kernels.cpu.code_generation import"
# Functions that are not worth tests: representations for people, and examples.
_NOT_SAMPLED = re.compile(r"penstock\.examples|__repr__|__str__|_repr_html_")


@dataclass(frozen=True)
class Case:
    """One mutant of one function, and its outcome.

    Attributes:
        module, function, number: the names and number that identify the mutant in the current source.
        line, before, after: the line number of the change, and the changed code before and after it.
        outcome: the outcome so far; empty if no file has judged the mutant.
        files: the test files that have judged the mutant.
        killer: the test that failed; empty if none did.
    """

    module: str
    function: str
    number: int
    line: int
    before: str
    after: str
    outcome: str = ""
    files: tuple[str, ...] = ()
    killer: str = ""

    @property
    def mutant(self) -> tuple[str, str, str, str]:
        """The mutant's key, which stays the same if other code of the module changes."""
        return self.module, self.function, self.before, self.after

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
    parser.add_argument(
        "--again", action="store_true", help="forget which files have judged those that were not killed"
    )
    parser.add_argument("--files", type=int, default=FILES, help="how many files judge a mutant (%(default)s)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no file after this time")
    parser.add_argument(
        "--baseline", type=float, default=BASELINE_SECONDS, help="limit of a file's unchanged tests (%(default)s s)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(%(default)s)")
    arguments = parser.parse_args()
    sampled = sample(arguments.functions, arguments.seed, arguments.only)
    known = {case.mutant: case for case in _results() if not (arguments.again and case.outcome != KILLED)}
    cases = {case.mutant: known.get(case.mutant, case) for case in sampled}
    load_libraries()
    until = time.monotonic() + 60 * arguments.minutes
    RESULTS.parent.mkdir(exist_ok=True)
    for _ in range(arguments.files):
        groups = by_file((case for case in cases.values() if case.outcome != KILLED), arguments.files)
        judge = functools.partial(_judge_before, until, arguments.baseline)
        for judged in in_processes(judge, groups, arguments.processes):
            for case in judged:
                print(f"{case.outcome:12} {case}", flush=True)
            cases |= {case.mutant: case for case in judged}
            everything = known | {mutant: case for mutant, case in cases.items() if case.outcome}
            RESULTS.write_text("".join(json.dumps(asdict(case)) + "\n" for case in everything.values()))
    print(summary([case for case in cases.values() if case.outcome], len(cases), arguments.seed))


def sample(count: int, seed: int, only: str = "") -> list[Case]:
    """Return a random mutant of each of ``count`` functions or, with ``only``, of all functions of modules whose names begin with it."""
    found = [
        (module, name, function)
        for module, path in package_modules().items()
        if module.startswith(only) and _GENERATES_CODE not in path.read_text()
        for name, function in dict(module_functions(module)).items()
        if not _NOT_SAMPLED.search(f"{module}.{name}")
    ]
    if not only:
        # The order of digests keeps a sample nearly the same when functions are added or removed.
        found.sort(key=lambda item: hashlib.sha256(f"{seed} {item[0]} {item[1]}".encode()).digest())
    cases = []
    for module, name, function in found:
        if len(cases) == count and not only:
            break
        if changes := count_mutants(function):
            number = random.Random(f"{seed} {module} {name}").randrange(changes)
            cases.append(Case(module, name, number, **asdict(describe(function, number))))
    return cases


def by_file(cases: Iterable[Case], files: int) -> list[tuple[str, list[Case]]]:
    """Group mutants by the test file that judges them next: the nearest of their ``files`` nearest files that has not yet judged them.

    The groups are in the order in which to run them.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        near = nearest_files(case.module, case.function)[:files]
        following = next((file for file in near if file not in case.files), None)
        if following is not None:
            groups.setdefault(following, []).append(case)
    # The groups with most mutants first; files that start servers take long, and come last.
    return sorted(groups.items(), key=lambda group: (_starts_servers(group[0]), -len(group[1])))


def judge_with(file: str, cases: Sequence[Case], baseline_seconds: float) -> list[Case]:
    """Judge mutants by a test file; return them with their outcomes."""
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(list(map(change_of, cases, range(len(cases)))), Path(folder), baseline_seconds)
        run_pytest([file], {}, MAX_FILE_SECONDS, [judge])
        lines = judge.verdicts.read_text().splitlines() if judge.verdicts.exists() else []
    judged = []
    verdicts = {number: (reached, killer) for number, reached, killer in map(json.loads, lines)}
    for number, case in enumerate(cases):
        reached, killer = verdicts.get(number, (0, ""))
        outcome = KILLED if killer else SURVIVED if reached or case.outcome == SURVIVED else NOT_REACHED
        judged.append(replace(case, outcome=outcome, killer=killer, files=(*case.files, file)))
    return judged


def change_of(case: Case, number: int) -> Change:
    """Return a mutant as a change for :class:`Judge`; ``number`` is the position of the change in the list of that judge."""
    path = package_modules()[case.module]
    source = path.read_bytes()
    changed = code_of(mutate(ast.parse(source), case.function, case.number), path, case.function)
    noting = code_of(note(ast.parse(source), case.function, number), path, case.function)
    return Change(case.module, case.function, case.number, path, changed, noting)


@functools.cache
def nearest_files(module: str, function: str) -> list[str]:
    """Return the test files near a function, nearest first.

    Files that mention the function's name are nearer, the more so the fewer files mention it.
    """
    scores = Counter(nearness(module))
    for name in function.split("."):
        naming = [file for file in _test_files() if name in _words(file)] if not name.startswith("__") else []
        for file in naming:
            scores[file] += round(100 / len(naming) ** 0.5)
    return sorted(scores, key=lambda file: -scores[file])


@functools.cache
def nearness(module: str) -> dict[str, int]:
    """Return a score for each test file that is near a module by its name, folder or imports; higher means nearer."""
    name = module.rpartition(".")[2]
    stem = name.strip("_")
    folders = [part.strip("_") for part in module.split(".")[1:-1]]
    scores: dict[str, int] = {}
    for file, (path, text) in _test_files().items():
        parts = path.relative_to(ROOT / "tests").parts[:-1]
        score = 8 * (path.stem == f"test_{stem}") + 4 * (f"_{stem}_" in f"_{path.stem}_")
        score += 6 * (module in text and bool(re.search(rf"\b{re.escape(module)}\b", text)))
        score += 3 * _imports_name(text, module)
        score += 4 * (f"fn.{name}(" in text or f".{name}(" in text)
        score += 4 * any(path.stem == f"test_{folder}" for folder in folders)
        if score or parts[:1] == tuple(folders[:1]):
            score += sum(own == other for own, other in zip(parts, folders))
            # Shorter files are preferred, and those that start servers come last, as they take long.
            scores[file] = 10 * score - len(text) // 5_000 - 20 * ("LocalServer(" in text)
    return scores


def summary(cases: list[Case], planned: int, seed: int) -> str:
    """Return a summary in Markdown: the number of mutants by outcome, and those that were not killed."""
    outcomes = Counter(case.outcome for case in cases)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    share = 100 * outcomes[KILLED] / max(len(cases), 1)
    lines = [
        f"{datetime.date.today()}, seed {seed}: {len(cases)} of {planned} mutants: {counts}; {share:.0f} % killed.",
        "",
    ]
    return "\n".join(lines + [f"- {case.outcome}: {case}" for case in cases if case.outcome != KILLED])


def _imports_name(text: str, module: str) -> bool:
    package, _, name = module.rpartition(".")
    return f"from {package} import" in text and bool(
        re.search(rf"from {re.escape(package)} import [^\n]*\b{re.escape(name)}\b", text)
    )


def _starts_servers(file: str) -> bool:
    return "LocalServer(" in _test_files()[file][1]


@functools.cache
def _words(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _test_files()[file][1]))


@functools.cache
def _test_files() -> dict[str, tuple[Path, str]]:
    return {file: (ROOT / file, (ROOT / file).read_text()) for file in test_files()}


def _judge_before(until: float, baseline_seconds: float, group: tuple[str, list[Case]]) -> list[Case]:
    return judge_with(*group, baseline_seconds) if time.monotonic() < until else []


def _results() -> Iterator[Case]:
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else ():
        found = json.loads(line)
        yield Case(**{**found, "files": tuple(found["files"])})


if __name__ == "__main__":
    main()
