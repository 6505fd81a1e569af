"""Networks for tests."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

sys.path.insert(0, str(Path(__file__).parent))

import networks


@pytest.fixture
def write_network(tmp_path: Path) -> Callable[..., Path]:
    """Write networks to a temporary folder."""
    return functools.partial(networks.write_network, folder=tmp_path)
