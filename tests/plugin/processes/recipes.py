"""What the tests of recipes for several processes share."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[3]
IMAGES = 20


def folder_of_images(root: Path) -> Path:
    """Two classes, dark and bright, of ten images each."""
    for number in range(IMAGES):
        folder = root / ("dark", "bright")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (80, 60), (40 + 160 * (number % 2) + number,) * 3).save(folder / f"{number}.png")
    return root


def free_address() -> str:
    """An address on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def run_together(commands: Sequence[Sequence[str]], **environment: str) -> list[str]:
    """What programs print that run at the same time."""
    path = os.pathsep.join([str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")])
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | environment | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    try:
        told = [process.communicate(timeout=200)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert not any(process.returncode for process in processes), told
    return told
