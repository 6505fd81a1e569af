"""Runs that wait for data that another thread feeds."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def

_PATIENCE = 20


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def _fed(blocking: bool = True) -> Any:
    return fn.external_source(name="fed", blocking=blocking) + 1


def _started(task: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Return a thread that runs the task, and the list that will contain the task's result or error."""
    given: list[Any] = []

    def run() -> None:
        try:
            given.append(task())
        except Exception as error:
            given.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, given


@pytest.mark.parametrize("ahead", [{}, {"exec_pipelined": False, "exec_async": False}], ids=["ahead", "at_once"])
def test_runs_wait_for_a_thread_that_feeds(ahead: dict[str, bool]) -> None:
    pipeline = _fed(**ahead)
    pipeline.build()
    consumed = threading.Semaphore(0)

    def feed() -> None:
        for number in range(3):
            pipeline.feed_input("fed", [np.int32(number)] * (number + 1))
            # Feed the next batch only after a run has begun to wait for it.
            assert consumed.acquire(timeout=_PATIENCE)

    thread, failures = _started(feed)
    batches = []
    for _ in range(3):
        (batch,) = pipeline.run()
        batches.append([int(np.asarray(sample)) for sample in batch])
        consumed.release()
    thread.join(_PATIENCE)
    assert failures == [None]
    assert batches == [[1], [2, 2], [3, 3, 3]]


@pytest.mark.parametrize("ahead", [{}, {"exec_pipelined": False, "exec_async": False}], ids=["ahead", "at_once"])
@pytest.mark.parametrize("slow", [False, True], ids=["", "slow"])
def test_closing_ends_the_wait(ahead: dict[str, bool], slow: bool) -> None:
    """This holds even if the pipeline is closed before its thread begins to wait."""
    pipeline = _fed(**ahead)
    pipeline.build()
    executor = pipeline.executor
    waits = threading.Event()
    (operator,) = executor.input_operators.values()
    has_data = operator.has_data

    def noted() -> bool:
        waits.set()
        return has_data()

    operator.has_data = noted  # type: ignore[method-assign]
    if slow:
        queue: Any = pipeline._queue
        schedule, closed = queue.schedule, threading.Event()

        def slowly(completes: bool = False) -> None:
            schedule(completes)
            assert closed.wait(_PATIENCE)

        queue.schedule = slowly
    thread, given = _started(pipeline.run)
    assert waits.wait(_PATIENCE)
    pipeline.close()
    if slow:
        closed.set()
    thread.join(_PATIENCE)
    assert not thread.is_alive()
    assert isinstance(given[0], IndexError)


def test_scheduled_runs_do_not_hold_up_their_caller() -> None:
    pipeline: Pipeline = _fed()
    pipeline.schedule_run()
    pipeline.feed_input("fed", [np.int32(5)])
    (batch,) = pipeline.share_outputs()
    assert int(np.asarray(batch[0])) == 6


def test_programs_end_while_a_run_waits() -> None:
    program = (
        "from penstock import fn, pipeline_def\n"
        "@pipeline_def(batch_size=1, num_threads=1, device_id=None)\n"
        "def waiting(): return fn.external_source(name='fed', blocking=True)\n"
        "pipeline = waiting(); pipeline.schedule_run(); print('done')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_without_blocking_a_run_fails() -> None:
    with pytest.raises(IndexError, match="feed more data"):
        _fed(blocking=False).run()
