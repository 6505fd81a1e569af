"""Collects these tests only if CuPy finds a GPU, and tests of networks only with ONNX Runtime for GPUs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from penstock.schema.libraries import ONNX_RUNTIME
from penstock.tensors.cuda import device_count


def runs_networks_on_gpus() -> bool:
    """Return whether ONNX Runtime is installed, and is the one for GPUs."""
    if not device_count() or ONNX_RUNTIME.missing():
        return False
    import onnxruntime

    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


collect_ignore_glob = [] if device_count() else ["test_*.py"]
if device_count() < 2:
    collect_ignore_glob.append("test_*two_gpus.py")
if not runs_networks_on_gpus():
    collect_ignore_glob.append("test_networks_on_gpu.py")
# Without this, JAX would reserve most of the GPU's memory, which tests in several processes share.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# This folder is included, as the server's tests import models from other test files.
sys.path[:0] = [
    str(Path(__file__).parents[1] / folder) for folder in ("golden", "kernels/cuda", "operators/inference", "gpu")
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", type=int, default=0, help="the number of the GPU on which the tests run")


def pytest_configure(config: pytest.Config) -> None:
    import tested_gpu

    tested_gpu.choose(config.getoption("--device", 0))
