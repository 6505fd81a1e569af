"""The skill for agents: its script finds DALI's names in programs, and its comparison finds differing outputs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.tensors import TensorListCPU

SKILL = Path(__file__).resolve().parents[2] / "docs" / "skill"
SCRIPT = SKILL / "check_program.py"


def check(tmp_path: Path, source: str) -> tuple[int, list[str]]:
    program = tmp_path / "program.py"
    program.write_text(source, encoding="utf-8")
    run = subprocess.run([sys.executable, str(SCRIPT), str(program)], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return run.returncode, [line.partition("program.py:")[2] for line in run.stdout.splitlines()]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import nvidia.dali.fn as fn\nfn.resize", "2: nvidia.dali.fn.resize -> penstock.fn.resize"),
        (
            "from nvidia.dali import fn\nfn.decoders.image(x)",
            "2: nvidia.dali.fn.decoders.image -> penstock.fn.decoders.image",
        ),
        ("import nvidia.dali\nnvidia.dali.types.RGB", "2: nvidia.dali.types.RGB -> penstock.types.RGB"),
        ("from nvidia import dali\ndali.ops.Flip", "2: nvidia.dali.ops.Flip -> penstock.ops.Flip"),
        (
            "from nvidia.dali.pipeline import Pipeline as P",
            "1: nvidia.dali.pipeline.Pipeline -> penstock.pipeline.Pipeline",
        ),
        (
            "from nvidia.dali.auto_aug import rand_augment",
            "1: nvidia.dali.auto_aug.rand_augment -> penstock.auto_aug.rand_augment",
        ),
        ("import nvidia.dali.experimental.dynamic as ndd", "1: nvidia.dali.experimental.dynamic -> penstock.dynamic"),
    ],
)
def test_names_are_found_however_they_are_imported(source: str, line: str, tmp_path: Path) -> None:
    status, lines = check(tmp_path, source)
    assert status == 0
    assert line in lines


@pytest.mark.parametrize("name", ["fn.no_such", "fn.decoders.no_such", "no_such_module.x", "types.NO_SUCH"])
def test_missing_names_are_told(name: str, tmp_path: Path) -> None:
    status, lines = check(tmp_path, f"import nvidia.dali as d\nd.{name}\n")
    assert status == 1
    assert "MISSING: penstock." in lines[-1]


def test_other_names_are_left_alone(tmp_path: Path) -> None:
    assert check(tmp_path, "import nvidia_dali_like\nfn = 1\nfn.resize\n") == (0, [])


def test_without_programs_the_usage_is_told() -> None:
    run = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "PROGRAM.py" in run.stderr


def test_the_comparison_tells_the_largest_difference() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (SKILL / "SKILL.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    ours, theirs = (TensorListCPU([np.full((2, 2), value, np.uint8)] * 2) for value in (3, 5))
    assert names["differences"]([ours, ours], [ours, theirs]) == [0.0, 2.0]
