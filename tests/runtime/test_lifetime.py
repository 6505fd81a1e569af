"""A pipeline's resources are freed after their last use, without garbage collection."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def
from penstock.errors import OperatorError


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
    """A pipeline of that source, after it was run until the error came."""

    @pipeline_def(batch_size=2, num_threads=2, **options)
    def define() -> Any:
        return source()

    pipeline = define()
    # Not by pytest.raises: what it gives keeps the traceback.
    try:
        while True:
            pipeline.run()
    except error:
        return pipeline


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
    assert alive() is None
    assert not any(map(is_running, pids))


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
    assert alive() is None
