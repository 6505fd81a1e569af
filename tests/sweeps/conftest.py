"""Sweeps run on the CPU, and on a GPU: a real one where there is one, or else an emulated one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.tensors.cuda import device_count

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "kernels" / "cuda")]


@pytest.fixture(autouse=True)
def with_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """There is a GPU."""
    from emulation import emulated_gpu

    folder = request.config.cache.mkdir("emulated_kernels")
    with contextlib.nullcontext() if device_count() else emulated_gpu(folder):
        yield
