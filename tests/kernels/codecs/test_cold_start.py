"""Start-up of a process without cached kernels and without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRST_REGION = """
import cv2, numpy as np
from penstock.kernels.codecs.image_codec import decode_to_scratch
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.jpeg_baseline import compiling_at_once, is_worthwhile
from penstock.kernels.cpu.jpeg.files import decode_file
from penstock.kernels.windows import Region

picture = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
encoded = cv2.imencode(".jpg", picture)[1].reshape(-1)
whole = cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB)
pixels = decode_to_scratch(encoded, read_header(encoded), Region((10, 20), (30, 40)))
assert np.array_equal(pixels, whole[10:40, 20:60])
assert not decode_file.signatures
with compiling_at_once():
    assert is_worthwhile()
assert sum(not is_worthwhile() for _ in range(1100)) == 999
"""


def outcome(program: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


def test_the_first_regions_do_not_wait_for_the_compiler(tmp_path: Path) -> None:
    run = outcome(FIRST_REGION, tmp_path)
    assert run.returncode == 0, run.stderr


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="with a GPU, advice on its libraries is wanted")
def test_nothing_is_said_about_missing_gpu_libraries(tmp_path: Path) -> None:
    program = (
        "import os; from penstock.kernels.codecs.libraries import nvimgcodec; nvimgcodec(); os.write(2, b'afterwards')"
    )
    assert outcome(program, tmp_path).stderr == "afterwards"
