"""These tests run real DALI beside Penstock, so they are collected only where it is installed (`make conformance`)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _dali_is_installed() -> bool:
    try:
        return importlib.util.find_spec("nvidia.dali") is not None
    except ModuleNotFoundError:
        return False


collect_ignore_glob = [] if _dali_is_installed() else ["test_*.py"]
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "golden")]
