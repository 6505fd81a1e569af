"""Helpers for testing the recipes that run several processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "serving"))

from free_ports import free_ports

ROOT = Path(__file__).resolve().parents[3]
IMAGES = 20
WITHOUT_GPUS = {"CUDA_VISIBLE_DEVICES": ""}


def folder_of_images(root: Path) -> Path:
    """Write ten dark and ten bright images into the folders of two classes, and return the folder that contains both."""
    for number in range(IMAGES):
        folder = root / ("dark", "bright")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (80, 60), (40 + 160 * (number % 2) + number,) * 3).save(folder / f"{number}.png")
    return root


def free_address() -> str:
    """Return an address on this machine with a free port."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


def run_together(commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]]) -> list[str]:
    """Run programs at the same time, each with further environment variables; return each program's output."""
    path = os.pathsep.join([str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")])
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **environment, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command, environment in zip(commands, environments, strict=True)
    ]
    try:
        told = [process.communicate(timeout=200)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert not any(process.returncode for process in processes), told
    return told


def check_torchrun(root: Path, **environment: str) -> None:
    """Run the recipe for torchrun, and check the output of its two processes."""
    command = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    command += ["--master-port", free_address().partition(":")[2]]
    command += [str(Path(__file__).with_name("left_threads.py")), str(ROOT / "examples" / "train_with_torchrun.py")]
    command += [str(folder_of_images(root)), "--batch-size", "4"]
    (told,) = run_together([command], [{"OMP_NUM_THREADS": "1", **environment}])
    for rank in range(2):
        # Ten images for each process, in three batches of four with the last one filled up, so 12 in each of two epochs.
        seen = re.findall(rf"rank {rank} of 2: epoch (\d), (\d+) images", told)
        assert seen == [("0", "12"), ("1", "12")], told
        assert f"rank {rank}: the network is rank 0's" in told
        assert f"rank {rank}: left []" in told


def check_jax_distributed(root: Path, environments: Sequence[Mapping[str, str]]) -> None:
    """Run the recipe for `jax.distributed` in two processes, and check their output."""
    command = [str(ROOT / "examples" / "train_with_jax_distributed.py"), str(folder_of_images(root))]
    command += ["--coordinator", free_address(), "--processes", "2", "--batch-size", "4"]
    told = run_together([[*command, "--process", str(number)] for number in range(2)], environments)
    # Ten images for each process, in five batches of two, in each of two epochs.
    for number, text in enumerate(told):
        assert re.findall(rf"process {number}: epoch (\d), (\d+) images", text) == [("0", "10"), ("1", "10")], text
    losses = [re.findall(r"loss (\S+)", text) for text in told]
    weights = [re.findall(r"weights (\S+)", text) for text in told]
    assert losses[0] == losses[1]
    assert len(weights[0]) == 1
    assert weights[0] == weights[1]
