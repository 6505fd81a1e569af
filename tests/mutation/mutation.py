"""Mutation testing: changes functions of the package, one at a time, and runs the nearest tests, which should fail.

A sample of functions, the same for each seed; of each, one mutant. The nearest tests are the files that import the function's
module, call it or are named after it, and the sweeps of its operators; they run in the default selection, until one fails. Functions
that numba compiles ahead are left out: a changed source would not be what runs.

    make mutate ARGS="--functions 20 --seed 3"
    make mutate ARGS="--only penstock.storage.remote"
    make mutate ARGS="--again"   # those that survived the last time
"""

from __future__ import annotations

import argparse
import ast
import datetime
import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants import count_mutants, describe, functions

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "backend" / "penstock"
RESULTS = ROOT / "build" / "mutation.jsonl"
MAX_FILES = 4
"""The nearest files of tests, of which one must fail."""
FILE_SECONDS = 600
"""What takes longer with a mutant than this has been noticed."""
KILLED, SURVIVED, NOT_REACHED, NO_TESTS = "killed", "survived", "not reached", "no tests"
NOT_JUDGED = "not judged"
"""Tests that fail or take too long without the mutant, too, tell nothing about it."""
# These need a server, a GPU, another framework, or an hour.
_FAR = {
    "benchmarks",
    "conformance",
    "contract",
    "docker",
    "docs",
    "examples",
    "fuzz",
    "gpu",
    "mutation",
    "platforms",
    "sweeps",
}
# Not worth a test: what is shown to people, and examples.
_NOT_SAMPLED = re.compile(r"penstock\.examples|__repr__|__str__|_repr_html_")


@dataclass(frozen=True)
class Case:
    """One mutant of one function, and what became of it."""

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
    arguments = parser.parse_args()
    if arguments.again:
        cases = [case for case in _last_results() if case.outcome != KILLED]
    else:
        cases = sample(arguments.functions, arguments.seed, arguments.only)
    until = time.monotonic() + 60 * arguments.minutes
    RESULTS.parent.mkdir(exist_ok=True)
    done: list[Case] = []
    with RESULTS.open("w") as file:
        for case in cases:
            if time.monotonic() > until:
                break
            done.append(judge(case))
            print(f"{done[-1].outcome:12} {done[-1]}", flush=True)
            file.write(json.dumps(asdict(done[-1])) + "\n")
            file.flush()
    print(summary(done, len(cases), arguments.seed))


def sample(count: int, seed: int, only: str = "") -> list[Case]:
    """A mutant of each of ``count`` functions; of all whose modules' names begin with ``only``, if that is given."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = _module_name(path)
        for name, function in functions(ast.parse(path.read_bytes())):
            if _NOT_SAMPLED.search(f"{module}.{name}") or not module.startswith(only):
                continue
            found.append((module, name, function))
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
    """Runs the tests nearest to a mutant, file by file, until one fails."""
    files = nearest(case.module)
    reached = fail_anyway = False
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder, "reached")
        mutant = {**asdict(case), "reached": str(mark)}
        for file in [*files, *_sweeps(case.module)]:
            failed = _fails(file, mutant)
            reached = reached or mark.exists()
            if failed and not _fails(file, None):
                return _with(case, KILLED, (file,))
            fail_anyway = fail_anyway or failed
    if not files:
        return _with(case, NO_TESTS, ())
    if fail_anyway:
        return _with(case, NOT_JUDGED, tuple(files))
    return _with(case, SURVIVED if reached else NOT_REACHED, tuple(files))


def nearest(module: str) -> list[str]:
    """The files of tests that are nearest to a module, best first."""
    name = module.rpartition(".")[2]
    stem = name.strip("_")
    folders = [part.strip("_") for part in module.split(".")[1:-1]]
    scores: Counter[str] = Counter()
    for file, (path, text) in _test_files().items():
        parts = path.relative_to(ROOT / "tests").parts[:-1]
        score = 8 * (path.stem == f"test_{stem}") + 4 * (f"_{stem}_" in f"_{path.stem}_")
        score += 6 * bool(re.search(rf"\b{re.escape(module)}\b", text)) + 3 * _imports_name(text, module)
        score += 4 * (f"fn.{name}(" in text or f".{name}(" in text)
        if score or parts[:1] == tuple(folders[:1]):
            score += sum(own == other for own, other in zip(parts, folders))
            # Of equals, the quickest: servers last.
            scores[file] = 10 * score - len(text) // 5_000 - 20 * ("LocalServer(" in text)
    return [file for file, _ in scores.most_common(MAX_FILES)]


def summary(cases: list[Case], planned: int, seed: int) -> str:
    """The numbers, and what was not killed, in Markdown."""
    outcomes = Counter(case.outcome for case in cases)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    share = 100 * outcomes[KILLED] / max(len(cases), 1)
    lines = [
        f"{datetime.date.today()}, seed {seed}: {len(cases)} of {planned} mutants: {counts}; {share:.0f} % killed.",
        "",
    ]
    return "\n".join(lines + [f"- {case.outcome}: {case}" for case in cases if case.outcome != KILLED])


def _sweeps(module: str) -> list[str]:
    """The sweeps over what a module's operators promise, as arguments of pytest."""
    source = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
    names = (
        re.findall(r'^    schema = Schema\(\s*name="(?:\w+__)?(\w+)"', source.read_text(), re.M)
        if source.exists()
        else []
    )
    return [f"tests/sweeps -k {' or '.join(names)}"] if names else []


def _imports_name(text: str, module: str) -> bool:
    package, _, name = module.rpartition(".")
    return bool(re.search(rf"from {re.escape(package)} import [^\n]*\b{re.escape(name)}\b", text))


@functools.cache
def _test_files() -> dict[str, tuple[Path, str]]:
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return {
        str(path.relative_to(ROOT)): (path, path.read_text())
        for path in paths
        if path.relative_to(ROOT / "tests").parts[0] not in _FAR
    }


@functools.cache
def _passes(file: str) -> bool:
    return _run(file, {})


def _fails(file: str, mutant: dict[str, object] | None) -> bool:
    """Whether a file's tests fail, with the mutant or as they are; those without any do not."""
    if mutant is None:
        return not _passes(file)
    hook = str(Path(__file__).parent / "hook")
    path = os.pathsep.join(filter(None, [hook, os.environ.get("PYTHONPATH")]))
    return not _run(file, {"PYTHONPATH": path, "PENSTOCK_MUTANT": json.dumps(mutant)})


def _run(file: str, variables: dict[str, str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    where, _, names = file.partition(" -k ")
    command += [where, "-k", names] if names else [where]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(FILE_SECONDS) in (0, 5)  # 5: no tests
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _with(case: Case, outcome: str, tests: tuple[str, ...]) -> Case:
    return Case(**{**asdict(case), "outcome": outcome, "tests": tests})


def _last_results() -> Iterator[Case]:
    for line in RESULTS.read_text().splitlines():
        yield Case(**json.loads(line))


if __name__ == "__main__":
    main()
