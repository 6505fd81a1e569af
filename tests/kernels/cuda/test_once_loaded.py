"""Kernels, staging memory and streams for copies are created only once, even if threads ask for them at the same time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.kernels.cuda import jpeg_pixels, launch, sources
from penstock.tensors import transfers
from penstock.tensors.cuda import require_cupy

pytestmark = pytest.mark.usefixtures("with_gpu")
_THREADS = 6


def _at_a_time(ask: Any) -> list[object]:
    barrier = threading.Barrier(_THREADS)

    def run(_: int) -> object:
        barrier.wait()
        return ask()

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(run, range(_THREADS)))


def test_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    require_cupy()
    jpeg_pixels.SOURCE.kernel("transform_blocks")
    sources._kernel_on.cache_clear()
    text = sources.KernelSource.text

    def slowly(source: sources.KernelSource, preamble: str = "") -> str:
        time.sleep(0.05)
        return text(source, preamble)

    monkeypatch.setattr(sources.KernelSource, "text", slowly)
    found = _at_a_time(lambda: jpeg_pixels.SOURCE.kernel("transform_blocks"))
    assert all(kernel is found[0] for kernel in found)


@pytest.mark.parametrize("get", [launch.staging, transfers.transfers])
def test_staging_memory_and_streams_for_copies(get: Any) -> None:
    for known in (launch._staging_for, transfers._of_device):
        known.cache_clear()
    found = _at_a_time(get)
    assert all(one is found[0] for one in found)
