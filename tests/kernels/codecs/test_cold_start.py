"""Start-up of a process without cached kernels and without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def outcome(program: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="with a GPU, advice on its libraries is wanted")
def test_nothing_is_said_about_missing_gpu_libraries(tmp_path: Path) -> None:
    program = (
        "import os; from penstock.kernels.codecs.libraries import nvimgcodec; nvimgcodec(); os.write(2, b'afterwards')"
    )
    assert outcome(program, tmp_path).stderr == "afterwards"
