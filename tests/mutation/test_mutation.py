"""Mutants are made as they are named, and reach the process whose tests are to fail."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mutants import MARKS, count_mutants, describe, functions, mark, mutate
from reach import Reach, package_modules

import mutation
from mutation import nearest, nearness, sample

HOOK = Path(__file__).parent / "hook"

SOURCE = '''
def clamp(x: int, most: int = 3) -> int:
    """The smaller one."""
    if x < 0 and most:
        raise ValueError(f"{x - 1}")
    note(x)
    return min(x, most) + 1

@kernel
def compiled(x):
    return x + 1
'''


def changes() -> list[tuple[str, str]]:
    ((_, function),) = functions(ast.parse(SOURCE))
    return [(one.before, one.after) for one in (describe(function, n) for n in range(count_mutants(function)))]


def test_changes_of_a_function() -> None:
    # Not mutated: annotations and defaults, the texts of errors, and functions that numba compiles.
    assert sorted(changes()) == sorted(
        [
            ("x < 0 and most", "not (x < 0 and most)"),
            ("x < 0 and most", "x < 0 or most"),
            ("x < 0", "x <= 0"),
            ("0", "1"),
            ("note(x)", "None"),
            ("return min(x, most) + 1", "return None"),
            ("min(x, most) + 1", "min(x, most) - 1"),
            ("min(x, most)", "max(x, most)"),
            ("1", "2"),
        ]
    )


def test_a_mutated_function_notes_that_it_was_reached() -> None:
    number = changes().index(("min(x, most)", "max(x, most)"))
    reached: list[None] = []
    names = {"__mutant_reached__": lambda: reached.append(None), "note": print, "kernel": lambda function: function}
    exec(compile(mutate(ast.parse(SOURCE), "clamp", number), "clamp", "exec"), names)
    assert names["clamp"](2) == 4
    assert len(reached) == 1


def test_another_process_gets_the_mutant(tmp_path: Path) -> None:
    case = next(case for case in sample(0, 0, only="penstock.storage.remote") if case.function == "Retries.pause")
    mutant = {
        "module": case.module,
        "function": case.function,
        "number": case.number,
        "reached": str(tmp_path / "reached"),
    }
    program = "from penstock.storage import Retries; Retries().pause(1)"
    environment = os.environ | {"PYTHONPATH": str(HOOK), "PENSTOCK_MUTANT": json.dumps(mutant)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=False, stderr=subprocess.DEVNULL)
    assert (tmp_path / "reached").exists()


def test_a_sample_is_the_same_for_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: path for name, path in package_modules().items() if name.startswith("penstock.storage.")}
    monkeypatch.setattr(mutation, "package_modules", lambda: some)
    assert sample(5, 1) == sample(5, 1) != sample(5, 2)


def test_files_near_a_module() -> None:
    for module, file in {
        "storage.remote": "storage/test_remote.py",
        "runtime.sources": "runtime/test_sources.py",
    }.items():
        near = nearness(f"penstock.{module}")
        assert max(near, key=near.__getitem__) == f"tests/{file}"


def test_marked_functions_set_their_bytes() -> None:
    marks = bytearray(8)
    source = f"{SOURCE}\nclass A:\n    def half(self, x):\n        return x / 2\n"
    names = {MARKS: marks, "note": print, "kernel": lambda function: function}
    exec(compile(mark(ast.parse(source), 5), "clamp", "exec"), names)
    assert names["A"]().half(3) == 1.5
    assert marks == bytes([0, 0, 0, 0, 0, 0, 1, 0])
    names["clamp"](2)
    assert marks == bytes([0, 0, 0, 0, 0, 1, 1, 0])


def test_tests_that_reach_a_function_are_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    function = "penstock.storage.remote:Retries.pause"
    traces = {
        file: {"functions": [function, "other:one", "other:two"], "imports": [], "tests": tests}
        for file, tests in {
            "tests/pipeline/test_pipeline.py": {
                "far": [0.1, [0, 1, 2]],
                "quick": [0.1, [0, 1]],
                "elsewhere": [0.1, [1]],
            },
            "tests/storage/test_remote.py": {"slow": [5.0, [0]], "near": [0.2, [0, 1, 2]], "too long": [60.0, [0]]},
        }.items()
    }
    reach = Reach({file: _with_files(file, trace) for file, trace in traces.items()})
    monkeypatch.setattr(mutation, "_reach", lambda: reach)
    found, seconds = nearest(*function.split(":"))
    assert [name.partition("::")[2] for name in found] == ["near", "slow", "quick", "far"]
    assert seconds == pytest.approx(5.4)


def test_a_function_that_no_test_reaches_gets_the_nearest_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "_reach", lambda: Reach({}))
    files, _ = nearest("penstock.storage.remote", "Retries.pause")
    assert files[0] == "tests/storage/test_remote.py"


def _with_files(file: str, trace: dict[str, Any]) -> dict[str, Any]:
    return {**trace, "tests": {f"{file}::{name}": found for name, found in trace["tests"].items()}}
