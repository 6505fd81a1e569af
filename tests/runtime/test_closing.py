"""Abandoned pipelines are closed, whatever their prefetching threads are doing when they are garbage-collected."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import Pipeline, fn
from penstock.runtime import Executor, prefetch_queue

_PATIENCE = 20


def _in_a_cycle(ahead: Callable[[], Any]) -> Executor:
    """Make a pipeline to which only a reference cycle refers, run one batch, and return the executor.

    The pipeline's prefetching thread calls ``ahead`` for each batch but the first.
    """
    iterations = 0

    def function() -> np.ndarray:
        nonlocal iterations
        iterations += 1
        if iterations > 1:
            ahead()
        return np.zeros(1)

    pipe: Any = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.python_function(function=function))
    pipe.run()
    pipe.itself = pipe
    return pipe.executor


def _note_when_closed(executor: Executor) -> threading.Event:
    closed, close = threading.Event(), executor.workers.close

    def noted() -> None:
        close()
        closed.set()

    executor.workers.close = noted  # type: ignore[method-assign]
    return closed


def test_a_pipeline_may_be_found_on_its_own_thread() -> None:
    is_garbage = threading.Event()

    def collect() -> None:
        assert is_garbage.wait(_PATIENCE)
        gc.collect()

    gc.disable()
    try:
        executor = _in_a_cycle(collect)
        closed = _note_when_closed(executor)
        is_garbage.set()
        assert closed.wait(_PATIENCE)
    finally:
        gc.enable()


def test_who_collects_garbage_may_hold_what_the_batch_waits_for() -> None:
    lock, begun = threading.Lock(), threading.Event()

    def locked() -> None:
        begun.set()
        with lock:
            pass

    with lock:
        executor = _in_a_cycle(locked)
        assert begun.wait(_PATIENCE)
        closed = _note_when_closed(executor)
        began = time.monotonic()
        gc.collect()
        assert time.monotonic() - began < _PATIENCE
        assert not closed.is_set()
    assert closed.wait(_PATIENCE)


def test_a_pipeline_runs_again_after_all_threads_were_ended() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.python_function(function=lambda: np.zeros(1)))
    pipe.run()
    # As at the interpreter's exit, where functions that were registered earlier may still run the pipeline.
    prefetch_queue.finish_batches()
    # The pipeline has prefetched two batches, so the third of these runs is the first that needs the thread.
    runs = threading.Thread(target=lambda: [pipe.run() for _ in range(4)], daemon=True)
    runs.start()
    runs.join(_PATIENCE)
    assert not runs.is_alive()
