"""The core works with the compiler's sanitizers while many threads use it at the same time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.exhaustive
def test_nothing_is_found() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "sanitize"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sanitizer: address,undefined" in done.stdout
    assert "sanitizer: thread" in done.stdout
