"""The recipe for torchrun, with two processes on this machine."""

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
    script = str(ROOT / "examples" / "train_with_torchrun.py")
    settings = [
        "--nproc-per-node",
        "2",
        "--master-addr",
        "127.0.0.1",
        "--master-port",
        free_address().partition(":")[2],
    ]
    command = ["-m", "torch.distributed.run", *settings, script, str(folder_of_images(tmp_path)), "--batch-size", "4"]
    (told,) = run_together([command], OMP_NUM_THREADS="1")
    for rank in range(2):
        # Ten images each, in three batches of four, in both epochs.
        seen = re.findall(rf"rank {rank} of 2: epoch (\d), (\d+) images", told)
        assert seen == [("0", "12"), ("1", "12")], told
        assert f"rank {rank}: the network is rank 0's" in told
