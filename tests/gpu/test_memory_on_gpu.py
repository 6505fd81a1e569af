"""Unused memory of a GPU is released, and none is taken where a process has no context yet."""

from __future__ import annotations

import subprocess
import sys

import cupy
import tested_gpu

from penstock.compat.memory import ReleaseUnusedMemory

FRESH = """
from penstock.compat.memory import ReleaseUnusedMemory
from penstock.tensors.driver import has_context

import cupy

device = {device}
cupy.cuda.runtime.getDeviceCount()
assert not has_context(device)
ReleaseUnusedMemory()
assert not has_context(device)
with cupy.cuda.Device(device):
    cupy.zeros(1)
assert has_context(device)
"""


def test_free_blocks_are_released() -> None:
    pool = cupy.get_default_memory_pool()
    with cupy.cuda.Device(tested_gpu.device()):
        cupy.zeros(32 << 20, cupy.uint8)
        assert pool.free_bytes() >= 32 << 20
    ReleaseUnusedMemory()
    with cupy.cuda.Device(tested_gpu.device()):
        assert pool.free_bytes() == 0


def test_no_context_is_created() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(device=tested_gpu.device())], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
