"""A pipeline's resources are freed after their last use, without garbage collection."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg

import penstock.dynamic as nd
from penstock import Pipeline, fn, pipeline_def
from penstock.errors import OperatorError
from penstock.schema.workspace import Workspace
from penstock.tensors import TensorList

_JPEG = np.frombuffer(
    simplejpeg.encode_jpeg(np.zeros((40, 56, 3), np.uint8) + np.arange(56, dtype=np.uint8)[:, None]), np.uint8
)


@pytest.fixture(autouse=True)
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def samples(value: int) -> list[np.ndarray]:
    return [np.full(1, value, np.int32)] * 2


def generate() -> Iterator[list[np.ndarray]]:
    for value in range(3):
        yield samples(value)


def call(i: int) -> list[np.ndarray]:
    if i == 3:
        raise StopIteration
    return samples(i)


def failing(i: int) -> list[np.ndarray]:
    if i == 3:
        raise LookupError("mine")
    return samples(i)


def drained(source: Callable[[], Any], error: type[BaseException], **options: Any) -> Pipeline:
    """Run a pipeline of a source until it raises an error of this class; return the pipeline."""

    @pipeline_def(batch_size=2, num_threads=2, **options)
    def define() -> Any:
        return source()

    pipeline = define()
    # `pytest.raises` is not used, as its result would keep the traceback alive.
    try:
        while True:
            pipeline.run()
    except error:
        return pipeline


def soon(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true soon.

    A thread that has passed on an error refers to the error, and thus to its frames, for a moment longer.
    """
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


@pytest.mark.parametrize(
    ("source", "cycle", "error"),
    [
        (generate, None, StopIteration),
        (generate, "raise", StopIteration),
        (call, None, StopIteration),
        (failing, None, Exception),
    ],
)
def test_workers_end_with_their_pipeline(source: Any, cycle: Any, error: type[BaseException]) -> None:
    pipeline = drained(lambda: fn.external_source(source, cycle=cycle, batch=True, parallel=True), error)
    pids, alive = pipeline._py_pool.pids(), weakref.ref(pipeline)
    assert all(map(is_running, pids))
    del pipeline
    assert soon(lambda: alive() is None)
    assert soon(lambda: not any(map(is_running, pids)))


def crop_that_fails() -> Any:
    return fn.crop(fn.external_source(lambda: [np.zeros((4, 4, 3), np.uint8)] * 2), crop=(5, 5))


def resize_that_fails() -> Any:
    images = fn.external_source(lambda: [np.zeros((4, 4, 3), np.uint8)] * 2)
    return fn.python_function(fn.resize(images, size=[99, 99]), function=lambda image: image[200])


def fused_that_fails() -> Any:
    encoded = fn.external_source(lambda: [np.zeros(9, np.uint8)] * 2)
    return fn.crop(fn.decoders.image(encoded), crop=(2, 2))


@pytest.mark.parametrize("source", [crop_that_fails, resize_that_fails, fused_that_fails])
@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"exec_pipelined": False, "exec_async": False}])
def test_pipelines_end_after_an_error(source: Any, options: dict[str, Any]) -> None:
    pipeline = drained(source, OperatorError, **options)
    alive = weakref.ref(pipeline)
    del pipeline
    assert soon(lambda: alive() is None)


# The second of these three files is not an image, and the third is truncated.
_UNREADABLE = [_JPEG, np.zeros(50, np.uint8), _JPEG[:-200]]


def decoded(images: Any) -> Any:
    return fn.decoders.image(images)


def resized(images: Any) -> Any:
    return fn.resize(decoded(images), size=(8, 9))


def refused(arrays: Any) -> Any:
    return fn.python_function(arrays, function=divided)


def divided(array: np.ndarray) -> np.ndarray:
    if not array[0]:
        raise ZeroDivisionError("mine")
    return array / array[0]


def live_batches() -> int:
    """Return the number of batches and workspaces that are alive."""
    return sum(issubclass(type(each), (TensorList, Workspace)) for each in gc.get_objects())


@pytest.mark.parametrize(
    ("define", "data"),
    [(decoded, _UNREADABLE), (resized, _UNREADABLE), (refused, [np.arange(3.0), np.ones(3)])],
)
def test_batches_end_although_samples_failed(define: Any, data: Any) -> None:
    @pipeline_def(batch_size=3, num_threads=2, exec_async=False, exec_pipelined=False)
    def make() -> Any:
        return define(fn.external_source(name="data"))

    pipeline = make()
    pipeline.build()

    def run() -> None:
        pipeline.feed_input("data", data)
        assert pipeline.executor.run_once(isolate=True).failures

    run()
    before = live_batches()
    for _ in range(10):
        run()
    assert soon(lambda: live_batches() <= before)


@pytest.mark.parametrize("define", [decoded, resized])
@pytest.mark.parametrize("options", [{"exec_async": False, "exec_pipelined": False}, {}])
def test_batches_end_although_samples_were_skipped(define: Any, options: dict[str, Any]) -> None:
    @pipeline_def(batch_size=3, num_threads=2, on_error="skip", **options)
    def make() -> Any:
        return define(fn.external_source(lambda: _UNREADABLE))

    pipeline = make()
    for _ in range(3):
        assert len(pipeline.run()[0]) == 1
    before = live_batches()
    for _ in range(10):
        pipeline.run()
    # The number of objects that belong to batches in flight varies by a few.
    assert live_batches() < before + 10


@pytest.mark.parametrize("define", [decoded, resized])
@pytest.mark.parametrize("options", [{"exec_async": False, "exec_pipelined": False}, {}])
def test_batches_end_when_the_error_of_a_sample_was_raised(define: Any, options: dict[str, Any]) -> None:
    def run() -> None:
        drained(lambda: define(fn.external_source(lambda: _UNREADABLE[1:])), OperatorError, **options).close()

    run()
    before = live_batches()
    for _ in range(5):
        run()
    assert soon(lambda: live_batches() <= before)


def test_batches_of_the_dynamic_interface_end_although_samples_failed() -> None:
    def run() -> None:
        try:
            nd.decoders.image(nd.batch([_JPEG, _JPEG[:-200]])).evaluate()
        except ValueError:
            return
        raise AssertionError

    run()
    before = live_batches()
    for _ in range(5):
        run()
    assert soon(lambda: live_batches() <= before)
