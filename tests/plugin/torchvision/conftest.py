"""Collects tests that need PyTorch and torchvision only where both are installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

_INSTALLED = all(importlib.util.find_spec(name) for name in ("torch", "torchvision"))
collect_ignore_glob = [] if _INSTALLED else ["test_pytorch*.py"]
if _INSTALLED:
    sys.path.insert(0, str(Path(__file__).parents[2] / "parity"))
    from libraries import torchvision_functional

    torchvision_functional()
