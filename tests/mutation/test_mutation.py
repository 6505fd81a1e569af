"""Mutants are made, sampled and judged, and processes that tests start load them as well."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mutants import MARKS, code_of, count_mutants, describe, functions, mutate, note
from sources import package_modules

import mutation
from mutation import by_file, nearest_files, nearness, sample
from penstock.storage import remote

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
    # Annotations, defaults, error messages, and functions that numba compiles are not mutated.
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


def test_a_noted_function_sets_its_byte() -> None:
    marks = bytearray(8)
    source = f"{SOURCE}\nclass A:\n    def half(self, x):\n        return x / 2\n"
    names = {MARKS: marks, "note": print, "kernel": lambda function: function}
    exec(compile(note(ast.parse(source), "A.half", 6), "clamp", "exec"), names)
    names["clamp"](2)
    assert marks == bytes(8)
    assert names["A"]().half(3) == 1.5
    assert marks == bytes([0, 0, 0, 0, 0, 0, 1, 0])


def test_the_code_of_a_function_fits_the_function_that_was_imported() -> None:
    path = package_modules()["penstock.storage.remote"]
    code = code_of(ast.parse(path.read_bytes()), path, "Retries.pause")
    loaded = remote.Retries.pause.__code__
    assert (code.co_firstlineno, code.co_name, code.co_code) == (loaded.co_firstlineno, "pause", loaded.co_code)


MODULE = """
import functools

def smaller(a, b):
    return min(a, b)

def unused(a):
    return -a

class Countdown:
    @property
    def size(self):
        return 5

    @functools.cache
    def left(self):
        return 2 - 1
"""
TESTS = """
import judged

def test_both_orders():
    assert judged.smaller(1, 2) == 1 == judged.smaller(2, 1)

def test_countdown():
    assert judged.Countdown().size > judged.Countdown().left() > 0

def test_that_fails():
    assert judged.smaller(1, 2) == 2
"""
PROGRAM = """
import ast, pytest, sys
from pathlib import Path
from judging import Change, Judge
from mutants import code_of, mutate, note

folder, source = Path(sys.argv[1]), Path(sys.argv[1], "judged.py")
def change(function, mutant, number):
    trees = (mutate(ast.parse(source.read_text()), function, mutant), note(ast.parse(source.read_text()), function, number))
    return Change("judged", function, mutant, source, *(code_of(tree, source, function) for tree in trees))
mutants = [("smaller", 1), ("unused", 0), ("Countdown.size", 0), ("Countdown.left", 1)]
judge = Judge([change(*mutant, number) for number, mutant in enumerate(mutants)], folder, 60)
pytest.main(["-q", "-p", "no:cacheprovider", str(folder / "test_judged.py")], plugins=[judge])
print(judge.verdicts.read_text())
"""


def test_mutants_are_judged_by_the_tests_that_reach_them(tmp_path: Path) -> None:
    (tmp_path / "judged.py").write_text(MODULE)
    (tmp_path / "test_judged.py").write_text(TESTS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(tmp_path)])}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    verdicts = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    # The mutants: `max`, killed; one in a function that no test reaches; `return None`, killed; `2 + 1`, which stays positive and survives.
    assert verdicts == [
        [0, 1, "test_judged.py::test_both_orders"],
        [1, 0, ""],
        [2, 1, "test_judged.py::test_countdown"],
        [3, 1, ""],
    ]


def test_mutants_go_from_file_to_file_until_one_kills_them() -> None:
    (case,) = (one for one in sample(0, 0, only="penstock.storage.remote") if one.function == "Retries.pause")
    first, second = nearest_files(case.module, case.function)[:2]
    assert by_file([case], 2) == [(first, [case])]
    lives = replace(case, outcome="survived", files=(first,))
    assert by_file([lives], 2) == [(second, [lives])]
    assert by_file([lives], 1) == []
