"""The example that serves a preset followed by a network, which computes scores for photographs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

# Kernels may have to be compiled first.
pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).resolve().parents[2]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "backend"), *sys.path])}
    command = [sys.executable, str(ROOT / "examples" / script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=550)


def test_clip_gives_the_scores_of_this_program(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # There are more images than one request can contain.
    names = [f"{number}.{'png' if number % 2 else 'jpg'}" for number in range(18)]
    for name in names:
        height, width = rng.integers(30, 400, 2)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(tmp_path / name)
    done = run("clip_zero_shot.py", *(str(tmp_path / name) for name in names), "--texts", "a cat", "no cat at all")
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^(\S+): a cat (\S+), no cat at all (\S+)$", done.stdout, re.MULTILINE)
    assert [name for name, *_ in shown] == names
    np.testing.assert_allclose([float(cat) + float(none) for _, cat, none in shown], 1, atol=0.0015)
    # Each image has a separate answer.
    assert len({cat for _, cat, _ in shown}) > 1
    assert "differ from the preset's in this program: 0 of 2709504" in done.stdout


@pytest.mark.parametrize("script", ["clip_zero_shot.py", "qwen2_vl.py"])
def test_help(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0, done.stderr
    assert f"python examples/{script}" in done.stdout
