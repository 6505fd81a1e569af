"""The recipe for jax.distributed, with two processes on this machine."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recipes import ROOT, folder_of_images, free_address, run_together


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_two_processes_train_one_network(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "train_with_jax_distributed.py")
    shared = [
        script,
        str(folder_of_images(tmp_path)),
        "--coordinator",
        free_address(),
        "--processes",
        "2",
        "--batch-size",
        "4",
    ]
    told = run_together([[*shared, "--process", str(number)] for number in range(2)], JAX_PLATFORMS="cpu")
    # Ten images each, in five batches of which each process has two, in both epochs.
    for number, text in enumerate(told):
        assert re.findall(rf"process {number}: epoch (\d), (\d+) images", text) == [("0", "10"), ("1", "10")], text
    losses = [re.findall(r"loss (\S+)", text) for text in told]
    weights = [re.findall(r"weights (\S+)", text) for text in told]
    assert losses[0] == losses[1]
    assert len(weights[0]) == 1
    assert weights[0] == weights[1]
