"""The recipe for torchrun works with two processes on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recipes import WITHOUT_GPUS, check_torchrun


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_two_processes_train_one_network(tmp_path: Path) -> None:
    check_torchrun(tmp_path, **WITHOUT_GPUS)
