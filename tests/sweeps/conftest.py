"""Runs sweeps on the CPU and on a GPU, a real or an emulated one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def gpu(with_gpu: None) -> None:
    """Provide a GPU."""
