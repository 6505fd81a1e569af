"""On a GPU, dynamic mode's work runs after earlier work on CuPy's current stream, and before later work on it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from penstock import dynamic
from penstock.tensors import streams as idle_streams


class Streams:
    """Replaces CuPy's streams by streams that log which streams they wait for.

    Attributes:
        log: which stream waited for which, in order; a stream that is not the current one is called "own".
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        streams, cuda = self, sys.modules["cupy"].cuda

        class Event(cuda.Event):  # type: ignore[misc, name-defined]
            name = ""

        class Stream(cuda.Stream):  # type: ignore[misc, name-defined]
            def __init__(self, non_blocking: bool = False) -> None:
                self.ptr = id(self)

            @property
            def name(self) -> str:
                return "current" if self is streams.current else "own"

            def record(self, event: Any = None) -> Any:
                event = event or Event()
                event.name = self.name
                return event

            def wait_event(self, event: Any) -> None:
                streams.log.append(f"{self.name} waits for {event.name}")

        self.current = Stream()
        # Streams of earlier tests do not log anything.
        monkeypatch.setattr(idle_streams, "_idle", {})
        monkeypatch.setattr(cuda, "Event", Event)
        monkeypatch.setattr(cuda, "Stream", Stream)
        monkeypatch.setattr(cuda, "get_current_stream", lambda: self.current)


def test_a_call_follows_the_current_stream_and_is_followed_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    with dynamic.EvalContext(device_id=0), dynamic.EvalMode.eager:
        numbers = dynamic.batch([np.arange(6).reshape(2, 3)]).gpu()
        streams.log.clear()
        larger = numbers + 1
        assert streams.log == ["own waits for current", "current waits for own"]
        np.testing.assert_array_equal(np.asarray(larger.cpu())[0], np.arange(1, 7).reshape(2, 3))


def test_what_is_on_the_cpu_waits_for_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    with dynamic.EvalContext(device_id=0), dynamic.EvalMode.eager:
        assert np.asarray(dynamic.tensor([1, 2]) + 1).tolist() == [2, 3]
    assert not streams.log


def test_work_runs_on_the_stream_of_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    with dynamic.EvalContext(device_id=0, cuda_stream=dynamic.Stream()) as context:
        (dynamic.tensor([1, 2]).gpu() + 1).evaluate()
        assert context.engine.executor.stream is context.cuda_stream.cupy_stream
    streams.current = context.cuda_stream.cupy_stream
    streams.log.clear()
    with context:
        (dynamic.tensor([1, 2]).gpu() + 1).evaluate()
    assert not streams.log
