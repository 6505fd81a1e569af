"""Mutants are made as they are named, and reach the process whose tests are to fail."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutants import count_mutants, describe, functions, mutate

from mutation import nearest, sample

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
    # Neither annotations and defaults, nor the words of errors, nor what numba compiles.
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


def test_a_sample_is_the_same_for_a_seed() -> None:
    assert sample(5, 1) == sample(5, 1) != sample(5, 2)


def test_the_nearest_tests() -> None:
    assert nearest("penstock.storage.remote")[0] == "tests/storage/test_remote.py"
    assert nearest("penstock.runtime.sources")[0] == "tests/runtime/test_sources.py"
