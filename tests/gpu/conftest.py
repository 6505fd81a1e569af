"""These tests are collected only where CuPy finds a GPU: without one there is nothing that they could run on."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.tensors.cuda import device_count

collect_ignore_glob = [] if device_count() else ["test_*.py"]
sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("golden", "kernels/cuda")]
