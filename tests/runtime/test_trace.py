"""Traces of pipelines contain the times of operators and threads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def
from penstock.runtime.trace import Kind, OperatorTimes, Summary, Trace

NAP = 0.01


def napping(seconds: float) -> Callable[..., list[np.ndarray]]:
    def source() -> list[np.ndarray]:
        time.sleep(seconds)
        return [np.zeros((8, 8, 3), np.uint8)] * 4

    return source


def traced(source: Callable[..., Any], nap: float = 0.0, **settings: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, trace=True, **settings)
    def pipeline() -> Any:
        images = fn.external_source(source, layout="HWC")

        def slow(image: np.ndarray) -> np.ndarray:
            time.sleep(nap)
            return image

        return fn.resize(fn.python_function(images, function=slow), size=(400, 400), reference="pil")

    return pipeline()


def ran(pipeline: Pipeline, batches: int = 4, consumer: float = 0.0) -> Trace:
    pipeline.run()  # so that kernels are compiled before the trace
    trace = pipeline.trace
    assert trace is not None
    trace.clear()
    for _ in range(batches):
        pipeline.run()
        time.sleep(consumer)
    pipeline.close()
    return trace


def test_pipelines_are_not_traced_unless_asked() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def plain() -> Any:
        return fn.external_source(lambda: [np.zeros(1, np.uint8)])

    assert plain().trace is None


def test_operators_and_their_samples_are_recorded() -> None:
    trace = ran(traced(napping(0), nap=NAP, exec_async=False, exec_pipelined=False), batches=3)
    summary = trace.summary()
    times = {one.name: one for one in summary.operators}
    assert {"fn.resize", "fn.python_function", "fn.external_source"} == times.keys()
    assert summary.operators[0].name == "fn.python_function"
    assert times["fn.python_function"].batches == 3
    assert times["fn.python_function"].wall >= 3 * 4 * NAP
    assert times["fn.python_function"].cpu < times["fn.python_function"].wall / 2
    assert times["fn.resize"].gpu is None
    resized = [one for one in trace.spans if one.kind is Kind.SAMPLE and one.name == "fn.resize"]
    assert len(resized) == 3 * 4
    assert summary.batches == 3


def test_time_on_worker_threads_counts_for_their_operator() -> None:
    trace = ran(traced(napping(0), exec_async=False, exec_pipelined=False), batches=6)
    resize = next(one for one in trace.summary().operators if one.name == "fn.resize")
    shares = {one.thread for one in trace.spans if one.kind is Kind.SAMPLE}
    assert shares <= {"MainThread", "penstock-worker-1"}
    own = sum(one.cpu for one in trace.spans if one.kind is Kind.OPERATOR and one.name == "fn.resize")
    helped = sum(one.cpu for one in trace.spans if one.kind is Kind.SAMPLE and one.thread != "MainThread")
    assert resize.cpu == pytest.approx(own + helped)


def test_who_waits_for_whom_is_told() -> None:
    blocked = ran(traced(napping(0), nap=NAP)).summary()
    assert blocked.blocked > 0.5 * blocked.elapsed
    assert any("fn.python_function" in remedy and "waits" in remedy for remedy in blocked.advice())

    keeps_up = ran(traced(napping(0)), batches=6, consumer=0.2).summary()
    assert keeps_up.idle > 0.5 * keeps_up.elapsed
    assert keeps_up.queue_fill > 0.5
    assert keeps_up.advice()[0].startswith("The pipeline keeps up")

    slow_source = ran(traced(napping(0.1))).summary()
    assert slow_source.source > 0.5 * slow_source.elapsed
    assert "parallel=True" in slow_source.advice()[0]


def summary(**changed: Any) -> Summary:
    values: dict[str, Any] = {
        "elapsed": 10.0,
        "operators": [OperatorTimes("fn.resize", 100, wall=9.0, cpu=8.9)],
        "threads": {},
        "num_threads": 1,
        "cores": 4,
        "source": 0.0,
        "starved": 0.0,
        "blocked": 9.5,
        "idle": 0.0,
        "queue_fill": 0.0,
        "depth": 2,
        "batches": 100,
    }
    return Summary(**(values | changed))


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({}, "set `num_threads` to 2"),
        ({"cores": 1}, "All cores (1) are busy"),
        ({"depth": 0}, "Batches are not prefetched"),
        ({"starved": 6.0}, "waited 60% of the time for input"),
        ({"num_threads": 4}, "threads idle"),
        (
            {"operators": [OperatorTimes("fn.cast", 100, wall=1.0, cpu=1.0)]},
            "90000 us a batch (90%) passed between operators",
        ),
        ({"operators": [OperatorTimes("fn.resize", 100, wall=1.0, cpu=1.0, gpu=8.0)]}, "The GPU is the limit"),
        (
            {
                "operators": [
                    OperatorTimes("fn.resize", 9, wall=6.0, cpu=4.0),
                    OperatorTimes("fn.cast", 9, wall=3.0, cpu=2.0),
                ]
            },
            "Nothing stands out: of the operators' time, `fn.resize` takes the largest part, 67%.",
        ),
        ({"operators": [], "batches": 0}, "Nothing ran"),
    ],
)
def test_advice(changed: dict[str, Any], advice: str) -> None:
    assert any(advice in remedy for remedy in summary(**changed).advice())


def test_operators_with_one_name_are_told_apart() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, trace=True, passes=())
    def twice() -> Any:
        data = fn.external_source(lambda: [np.zeros((4, 4, 3), np.uint8)], layout="HWC", name="data")
        return fn.flip(fn.flip(data, name="one"), name="other")

    names = {one.name for one in ran(twice(), 1).summary().operators}
    assert names == {"fn.external_source", "fn.flip 'one'", "fn.flip 'other'"}


def test_it_is_written_for_perfetto(tmp_path: Path) -> None:
    trace = ran(traced(napping(0)))
    trace.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    threads = {event["args"]["name"]: event["tid"] for event in events if event["ph"] == "M"}
    assert {"MainThread", "penstock-prefetch"} <= threads.keys()
    work = [event for event in events if event["ph"] == "X" and event["cat"] == "operator"]
    assert {event["tid"] for event in work} == {threads["penstock-prefetch"]}
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events if event["ph"] == "X")
    assert any(event["name"] == "waiting for a batch: pipeline" for event in events)


def test_what_was_recorded_can_be_dropped() -> None:
    trace = ran(traced(napping(0)))
    assert trace.spans
    trace.clear()
    assert not trace.spans
    assert trace.summary().advice() == ["Nothing ran: there is no advice."]
