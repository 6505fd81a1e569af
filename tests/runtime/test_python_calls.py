"""A batch takes few calls of Python functions: none for each sample, so the number does not depend on the batch size."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

NORMALIZE: dict[str, Any] = {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4], "output_layout": "CHW"}
MOST_PER_RUN, MOST_PER_OPERATOR = 90, 40
"""The most calls permitted for a run, mostly to pass data in and out, and in addition for each operator."""
_BATCHES = 8
_MAY_DIFFER = 16
"""The difference between the numbers of calls that is tolerated, as a batch takes a few more calls if a thread has to wait.

A call for each sample would make a difference of at least 64.
"""


def uniform(low: float, high: float) -> Any:
    return fn.random.uniform(range=[low, high])


def crop(images: Any) -> Any:
    place = {"crop_pos_x": uniform(0, 1), "crop_pos_y": uniform(0, 1)}
    return fn.crop_mirror_normalize(images, crop=(28, 28), **place, **NORMALIZE)


def flip(images: Any) -> Any:
    images = fn.flip(images, horizontal=fn.random.coin_flip())
    return fn.crop_mirror_normalize(fn.brightness(images, brightness=uniform(0.6, 1.4)), **NORMALIZE)


def pad(images: Any) -> Any:
    images = fn.pad(images, axes=(0, 1), shape=(40, 40))
    place = {"crop_pos_x": uniform(0, 1), "crop_pos_y": uniform(0, 1)}
    return fn.crop_mirror_normalize(images, crop=(32, 32), mirror=fn.random.coin_flip(), **place, **NORMALIZE)


def colours(images: Any) -> Any:
    factors = {name: uniform(0.6, 1.4) for name in ("brightness", "contrast", "saturation")}
    return fn.crop_mirror_normalize(fn.color_twist(images, hue=uniform(-10, 10), **factors), **NORMALIZE)


def rotate(images: Any) -> Any:
    return fn.crop_mirror_normalize(fn.rotate(images, angle=uniform(-10, 10), keep_size=True), **NORMALIZE)


def flips(images: Any) -> Any:
    for number in range(24):
        images = fn.flip(images, horizontal=number % 2, vertical=1 - number % 2)
    return images


def letterbox(images: Any) -> Any:
    images = fn.resize(images, size=(40, 40), mode="not_larger")
    images = fn.crop(images, crop=(40, 40), out_of_bounds_policy="pad", fill_values=114)
    return fn.cast(fn.transpose(images, perm=[2, 0, 1]), dtype=types.FLOAT) / 255.0


def numbers(images: Any) -> Any:
    return fn.transpose(fn.cast(images, dtype=types.INT16) * 2 - 1, perm=[1, 0, 2])


OPERATORS = {crop: 4, flip: 6, pad: 6, colours: 7, rotate: 4, flips: 25, letterbox: 6, numbers: 5}
"""The number of operators in each pipeline as defined, before any pass, including the source."""


def calls_of_a_batch(work: Callable[[Any], Any], batch_size: int, threads: int) -> int:
    """Return the number of calls of Python functions during a batch, in all threads that work on it."""
    rng = np.random.default_rng(0)
    batches = [[rng.integers(0, 256, (32, 32, 3), np.uint8) for _ in range(batch_size)] for _ in range(4)]

    def source() -> Iterator[list[np.ndarray]]:
        return itertools.cycle(batches)

    # Without prefetching, this thread starts all work.
    @pipeline_def(
        batch_size=batch_size, num_threads=threads, device_id=None, seed=1, exec_pipelined=False, exec_async=False
    )
    def define() -> Any:
        return work(fn.external_source(source(), layout="HWC"))

    pipeline = define()
    pipeline.build()
    for _ in range(_BATCHES):
        pipeline.run()
    counts: list[int] = []

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        counts[-1] += event == "call"

    # Otherwise, finalizers of earlier tests' objects might run and be counted.
    gc.collect()
    gc.disable()
    try:
        for _ in range(_BATCHES):
            counts.append(0)
            sys.setprofile(count)
            try:
                pipeline.run()
            finally:
                sys.setprofile(None)
    finally:
        gc.enable()
    assert max(counts) - min(counts) <= _MAY_DIFFER
    return min(counts)


@pytest.mark.parametrize("work", OPERATORS, ids=lambda work: work.__name__)
def test_a_batch_takes_few_calls_however_large(work: Callable[[Any], Any]) -> None:
    calls = calls_of_a_batch(work, 64, 2)
    assert calls <= MOST_PER_RUN + MOST_PER_OPERATOR * OPERATORS[work]
    assert abs(calls_of_a_batch(work, 128, 2) - calls) <= _MAY_DIFFER
