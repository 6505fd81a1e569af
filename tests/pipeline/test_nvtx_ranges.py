"""A pipeline's work is marked with NVTX ranges if PENSTOCK_NVTX enables them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def


def doubled(**settings: Any) -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1, **settings)
    def define() -> Any:
        return fn.gaussian_blur(
            fn.external_source(lambda: np.ones((2, 4, 4, 3), np.uint8), layout="HWC"), window_size=3
        )

    made: Pipeline = define()
    return made


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Return a list to which pushed ranges are added, as there is no profiler to show them."""
    found: list[tuple[str, str, str]] = []

    @contextlib.contextmanager
    def annotate(message: str, domain: str, category: str) -> Iterator[None]:
        found.append((message, domain, category))
        yield

    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(annotate=annotate))
    monkeypatch.setenv("PENSTOCK_NVTX", "1")
    return found


@pytest.mark.parametrize("trace", [False, True])
def test_operators_and_samples_are_ranges(ranges: list[tuple[str, str, str]], trace: bool) -> None:
    pipeline = doubled(trace=trace)
    np.testing.assert_array_equal(pipeline.run()[0].as_array(), 1)
    assert {"operator", "sample"} <= {category for message, _, category in ranges if "gaussian_blur" in message}
    assert {domain for _, domain, _ in ranges} == {"penstock"}
    if trace:
        assert pipeline.trace is not None
        assert pipeline.trace.summary().batches == 1
    else:
        assert pipeline.trace is None
    pipeline.close()


def test_ranges_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setenv("PENSTOCK_NVTX", "1")
    with pytest.raises(ImportError, match=r"install penstock-triton\[nvtx\]"):
        doubled().build()


def test_other_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_NVTX", "yes")
    with pytest.raises(ValueError, match="PENSTOCK_NVTX must be 1"):
        doubled().build()
