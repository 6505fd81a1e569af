"""Mutated files never crash or hang a served decoder, leak an error, or affect other samples."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.exhaustive

HERE = Path(__file__).parent
CASES = 20_000
CASES_OF_CORE = 300_000


def _fuzz(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a campaign in a separate process; return its summary."""
    summary = folder / "summary.json"
    command = [sys.executable, str(HERE / "run.py"), "--json", str(summary), *arguments]
    paths = os.pathsep.join([str(HERE.parents[1] / "backend"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths, **environment}
    )
    assert summary.exists(), done.stderr[-3000:]
    return json.loads(summary.read_text())


@pytest.mark.timeout(600)
def test_mutated_files(tmp_path: Path) -> None:
    summary = _fuzz(tmp_path, "--cases", str(CASES), "--seed", "11", "--processes", "2")
    failures = {failure: kept[0] for failure, kept in summary["failures"].items()}
    assert not failures, json.dumps(failures, indent=1)
    assert summary["done"] == CASES
    decoded = {format for format, outcomes in summary["formats"].items() if outcomes.get("ok")}
    # Some files of each format must be decoded: if mutations broke all of them, code after the header would not be tested.
    assert decoded >= {
        "jpeg",
        "png",
        "tiff",
        "jpeg2k",
        "webp",
        "gif",
        "bmp",
        "pnm",
        "wav",
        "flac",
        "npy",
        "lz4",
        "video",
    }


def test_mutated_jpegs_between_fences(tmp_path: Path) -> None:
    """The JPEG kernels, which use unchecked pointers, stay within their memory; `make fuzz` checks accesses to arrays, too."""
    summary = _fuzz(tmp_path, "--cases", "3000", "--seed", "12", "--formats", "jpeg", "--fences")
    assert not summary["failures"], json.dumps(summary["failures"], indent=1)
    assert summary["formats"]["jpeg"]["ok"] > 500


@pytest.mark.timeout(600)
def test_mutated_files_in_the_core(tmp_path: Path) -> None:
    """The core's parsers do not read beyond files, and its PNG decoder makes the pixels that the specification requires."""
    command = ["make", "--no-print-directory", "fuzz-core", f"CASES={CASES_OF_CORE}", "SEED=13"]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seed 13: {CASES_OF_CORE} cases" in done.stdout
    counts = dict(re.findall(r"(\w+): \d+ cases, (\d+) with a header", done.stdout))
    decoded = int(re.findall(r"png: .* (\d+) decoded", done.stdout)[0])
    # If mutations broke almost all files, code after the headers would not be tested.
    assert min(map(int, counts.values())) > CASES_OF_CORE // 100
    assert decoded > CASES_OF_CORE // 100
    assert counts.keys() == {"jpeg", "png", "wav"}


@pytest.mark.parametrize(("place", "deadly"), [(92, False), (93, True), (-1, True)])
def test_fences_are_deadly(place: int, deadly: bool) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); from fuzzing.fences import fenced; import ctypes\n"
        "at_end, at_start = fenced(100), fenced(100)\n"
        f"memory = at_end if {place} > 0 else at_start\n"
        f"ctypes.string_at(memory.ctypes.data + {place}, 8)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == (-signal.SIGSEGV if deadly else 0)


@pytest.mark.timeout(300)
def test_what_no_decoder_may_do_is_seen(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    paths = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "backend")}
    subprocess.run([sys.executable, str(HERE / "sabotage.py"), str(summary)], check=True, env=paths)
    outcomes = json.loads(summary.read_text())["formats"]["npy"]
    assert {"CRASH", "HANG", "MEMORY", "UNTYPED", "NEIGHBOUR", "ok", "refused"} <= set(outcomes), outcomes
    assert sum(outcomes.values()) == 1280
