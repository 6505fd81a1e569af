"""The demonstration runs as the user `nobody` without HOME, on a read-only file system and without a network; it answers, and
leaves nothing behind.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from hardened import ROOT

pytestmark = pytest.mark.exhaustive

DEMO = [sys.executable, str(ROOT / "client_examples" / "demo.py")]


def run_hardened(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tests" / "serving" / "hardened.py"), *options, *DEMO]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def test_the_demonstration_answers_and_leaves_nothing() -> None:
    done = run_hardened()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "demo: http accuracy 0.995, grpc accuracy 0.995 over 200 images" in done.stdout
    assert "left behind" not in done.stderr


def test_without_any_folder_to_write_to_it_is_refused_in_one_line() -> None:
    done = run_hardened("--without-tmp")
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert "temporary folder" in line
    assert "TMPDIR" in line
