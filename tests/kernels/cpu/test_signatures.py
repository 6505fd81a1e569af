"""The list of kernels that are compiled ahead of time: it is well formed, and pipelines need no other kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.kernels import recording
from penstock.kernels.building.objects import find_kernel
from penstock.kernels.cpu import libraries
from penstock.kernels.cpu.callables import Callback
from penstock.kernels.cpu.signatures import parsed, text_of
from penstock.kernels.recording import Kind

ROOT = Path(__file__).resolve().parents[3]
MEASURE = ROOT / "tests" / "benchmarks" / "first_batches.py"


def test_the_list_is_sorted_and_each_kernel_takes_what_it_says() -> None:
    lines = recording.LIST.read_text().splitlines()
    assert lines == sorted(set(lines))
    for signature in recording.read():
        kernel = find_kernel(signature.name)
        given, _, result = signature.types.partition(" -> ")
        types = parsed(given)
        assert ", ".join(map(text_of, types)) == given
        assert len(types) == kernel.py_func.__code__.co_argcount, signature
        assert isinstance(kernel, Callback) is (signature.kind is Kind.CALLBACK) is bool(result)


def test_what_is_compiled_first_is_in_the_list() -> None:
    missing = {*recording.read(recording.FIRST)} - {*recording.read()}
    assert not missing, "what `penstock setup` compiles first has changed its types, or is gone"


def first_batches(name: str, home: Path, **variables: str) -> dict[str, object]:
    """Return what a new process of a user without a cache reports about a pipeline's first batches."""
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "NUMBA_CACHE_DIR": str(home / "kernels")}
    done = subprocess.run(
        [sys.executable, str(MEASURE), name, "--here", "--batches", "2"],
        env=os.environ | places | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told | {"log": done.stderr}


@pytest.mark.parametrize("name", ["digits", "A", "C", "D", "E"])
def test_pipelines_need_nothing_that_is_not_listed(name: str, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    first_batches(name, tmp_path, **{recording.VARIABLE: str(recorded)})
    missing = set(recording.read(recorded)) - set(recording.read())
    assert not missing, "`make signatures` adds them to the list"


@pytest.mark.skipif(libraries.library() is None, reason="the kernels are not compiled: make kernels")
@pytest.mark.parametrize("name", ["digits", "A", "C", "D", "E"])
def test_pipelines_run_without_numba(name: str, tmp_path: Path) -> None:
    told = first_batches(name, tmp_path)
    assert told["numba"] is False, told["log"]
    assert not list((tmp_path / "kernels").rglob("*"))


def test_importing_imports_no_compiler() -> None:
    program = (
        "import sys, penstock.fn, penstock.kernels.cpu.jpeg.batches, penstock.kernels.cpu.parts\n"
        "print({name for name in sys.modules if name.partition('.')[0] in ('numba', 'llvmlite')})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
