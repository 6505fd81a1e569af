"""Streams outlive the pipelines that use them."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.tensors import streams


def test_a_pipeline_in_a_cycle_leaves_its_stream_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = sys.modules["cupy"]
    destroyed: list[str] = []

    class Stream(cupy.cuda.Stream):  # type: ignore[misc, name-defined]
        def __del__(self) -> None:
            destroyed.append("a stream")

    monkeypatch.setattr(cupy.cuda, "Stream", Stream)
    monkeypatch.setattr(streams, "_idle", {})

    def define() -> Any:
        return fn.flip(fn.external_source(lambda: [np.zeros((2, 3, 3), np.uint8)], layout="HWC").gpu())

    pipeline: Any = pipeline_def(define, batch_size=1, num_threads=1, device_id=0)()
    pipeline.run()
    pipeline.itself = pipeline
    del pipeline
    gc.collect()
    # Pipelines of earlier tests may be garbage-collected at this time, and return their streams, too.
    kept = [stream for idle in streams._idle.values() for stream in idle if isinstance(stream, Stream)]
    assert len(kept) == 1
    assert not destroyed


def test_results_are_there_when_a_run_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = sys.modules["cupy"]
    waited_for = []

    class Event(cupy.cuda.Event):  # type: ignore[misc, name-defined]
        def synchronize(self) -> None:
            waited_for.append(self)

    monkeypatch.setattr(cupy.cuda, "Event", Event)

    @pipeline_def(batch_size=1, num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return fn.external_source(name="numbers").gpu()

    made: Any = pipeline()
    made.build()
    made.feed_input("numbers", [np.arange(3)])
    result = made.executor.run_once(isolate=True)
    assert result.ready in waited_for


@pytest.mark.parametrize("waits", [True, False], ids=["host", "stream"])
def test_events_that_were_waited_for_serve_later_results(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    cupy = sys.modules["cupy"]
    recorded: list[object] = []

    class Stream(cupy.cuda.Stream):  # type: ignore[misc, name-defined]
        def record(self, event: Any = None) -> Any:
            recorded.append(event)
            return super().record(event)

    monkeypatch.setattr(cupy.cuda, "Stream", Stream)
    monkeypatch.setattr(streams, "_idle", {})

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipeline() -> Any:
        return fn.flip(fn.external_source(lambda: [np.zeros((2, 3, 3), np.uint8)], layout="HWC").gpu())

    made: Any = pipeline()
    for _ in range(6):
        made.run() if waits else made.run(cupy.cuda.Stream())
    # Two batches are in flight while the test waits for the last one.
    assert len(recorded) == 7
    assert len(set(map(id, recorded))) == 2
