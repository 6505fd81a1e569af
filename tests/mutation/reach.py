"""Which tests reach which functions of the package.

Each file of tests runs once, in the default selection, with a mark in each function. What it found is in `build/reach` until the
file changes; functions are known by name, so that it stays true when others are added.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import marshal
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forks import ROOT, in_processes, run_pytest
from loading import MARKED, MARKS_FILE, map_marks
from mutants import MARKS, Function, functions, has_compiled, mark

PACKAGE = ROOT / "backend" / "penstock"
REACH = ROOT / "build" / "reach"
FILE_SECONDS = 1200
# These need a GPU, another framework or an hour, or do not run the package's code.
_LEFT_OUT = {
    "answers",
    "benchmarks",
    "conformance",
    "contract",
    "docker",
    "docs",
    "fuzz",
    "gpu",
    "mutation",
    "platforms",
    "qa",
    "sweeps",
}


@dataclass(frozen=True)
class Test:
    """A test that passed.

    Attributes:
        name: pytest's identifier.
        seconds: the time that it took, with its fixtures.
        breadth: how many functions it reaches.
    """

    name: str
    seconds: float
    breadth: int

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Reach:
    """The functions that files of tests reach.

    Args:
        traces: the traces of files of tests by path, as :class:`Recorder` writes them.
    """

    def __init__(self, traces: dict[str, dict[str, Any]]) -> None:
        self._tests: dict[str, list[Test]] = {}
        self._importing: dict[str, list[str]] = {}
        self._seconds: dict[str, float] = {}
        for file, found in traces.items():
            self._add(file, found)

    @staticmethod
    def known() -> Reach:
        """Return the reach of the files that were traced and have not changed since."""
        return Reach({file: found for file in test_files() if (found := _traced(file)) is not None})

    def tests(self, function: str) -> list[Test]:
        """Return the tests that reach a function, ``module:name``, when they run."""
        return self._tests.get(function, [])

    def importing(self, function: str) -> list[str]:
        """Return the files of tests that reach a function when they are imported."""
        return self._importing.get(function, [])

    def seconds(self, test: str) -> float:
        """Return how long a test took; infinite if it did not pass."""
        return self._seconds.get(test, float("inf"))

    def _add(self, file: str, found: dict[str, Any]) -> None:
        names = found["functions"]
        for name, (seconds, reached) in found["tests"].items():
            self._seconds[name] = seconds
            test = Test(name, seconds, len(reached))
            for number in reached:
                self._tests.setdefault(names[number], []).append(test)
        for number in found["imports"]:
            self._importing.setdefault(names[number], []).append(file)


def trace(files: list[str], processes: int) -> None:
    """Run those files of tests that have changed since they were traced."""
    files = [file for file in files if _traced(file) is None]
    if not files:
        return
    _write_marked_code()
    _function_names()
    for number, line in enumerate(in_processes(_trace, files, processes), 1):
        print(f"{number}/{len(files)} {line}", flush=True)


def test_files() -> list[str]:
    """Return the files of tests that can say something about a mutant; those that start servers last."""
    paths = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.relative_to(ROOT / "tests").parts[0] not in _LEFT_OUT
    ]
    paths.sort(key=lambda path: ("serving" in path.parts or "LocalServer(" in path.read_text(), path.stat().st_size))
    return [str(path.relative_to(ROOT)) for path in paths]


@functools.cache
def package_modules() -> dict[str, Path]:
    """Return the paths of the package's modules."""
    return {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def module_functions(module: str) -> list[tuple[str, Function]]:
    """Return the functions of a module, by name; one that is defined twice, under a condition, has two entries."""
    return list(functions(ast.parse(package_modules()[module].read_bytes())))


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def _function_names() -> list[str]:
    """Return the name of each byte's function."""
    return [f"{module}:{name}" for module in package_modules() for name, _ in module_functions(module)]


def _write_marked_code() -> None:
    """Write the code of marked modules, unless the package is as it was the last time."""
    folder, digest = REACH / "code", hashlib.sha256(MARKS.encode())
    for path in package_modules().values():
        digest.update(path.read_bytes())
    valid = REACH / "code-digest"
    if valid.exists() and valid.read_text() == digest.hexdigest():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    first = 0
    for module, path in package_modules().items():
        tree = ast.parse(path.read_bytes())
        # Kernels are compiled again when a function that they refer to changes.
        if not has_compiled(tree) and not module.startswith("penstock.kernels.cpu."):
            code = compile(mark(tree, first), str(path), "exec", dont_inherit=True)
            (folder / f"{module}.code").write_bytes(marshal.dumps(code))
        first += len(module_functions(module))
    valid.write_text(digest.hexdigest())


def _trace(file: str) -> str:
    """Trace one file of tests; return a line about it."""
    if _traced(file) is not None:
        return f"{file}: traced meanwhile"
    folder = REACH / "marks" / hashlib.sha256(file.encode()).hexdigest()[:12]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "code").symlink_to(REACH / "code")
    names = _function_names()
    (folder / MARKS_FILE).write_bytes(bytes(len(names)))
    recorder = Recorder(folder, names, _result_path(file), _digest(file))
    status = run_pytest([file], {MARKED: str(folder)}, FILE_SECONDS, [recorder], str(folder / "log"))
    found = _traced(file)
    return f"{file}: {len(found['tests']) if found else 0} tests, exit status {status}"


class Recorder:
    """Plugin of pytest that writes which functions each test reaches.

    Args:
        folder: the marks' folder.
        names: the functions' names, by byte.
        result, digest: the file to write, and what it is valid for.
    """

    def __init__(self, folder: Path, names: list[str], result: Path, digest: str) -> None:
        self._folder, self._names, self._result, self._digest = folder, names, result, digest
        self._tests: dict[str, tuple[float, list[int]]] = {}
        self._imports: list[int] = []
        self._seconds, self._passed = 0.0, True

    def pytest_configure(self) -> None:
        self._marks = map_marks(self._folder)

    def pytest_collection_finish(self) -> None:
        self._imports = self._taken()

    def pytest_runtest_logstart(self) -> None:
        self._taken()
        self._seconds, self._passed = 0.0, True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        self._passed = self._passed and report.passed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        reached = self._taken()
        if self._passed:
            self._tests[nodeid] = round(self._seconds, 3), reached

    def pytest_sessionfinish(self) -> None:
        used = sorted({*self._imports, *(number for _, reached in self._tests.values() for number in reached)})
        places = {number: place for place, number in enumerate(used)}
        result = {
            "digest": self._digest,
            "functions": [self._names[number] for number in used],
            "imports": [places[number] for number in self._imports],
            "tests": {
                name: (seconds, [places[number] for number in reached])
                for name, (seconds, reached) in self._tests.items()
            },
        }
        self._result.parent.mkdir(parents=True, exist_ok=True)
        self._result.write_text(json.dumps(result))

    def _taken(self) -> list[int]:
        """Return the functions that were reached since the last time."""
        reached = [number for number, byte in enumerate(self._marks[:]) if byte]
        for number in reached:
            self._marks[number] = 0
        return reached


def _traced(file: str) -> dict[str, Any] | None:
    path = _result_path(file)
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found if found["digest"] == _digest(file) else None


def _result_path(file: str) -> Path:
    return REACH / "tests" / (file.removeprefix("tests/").replace("/", ".") + ".json")


def _digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:16]
