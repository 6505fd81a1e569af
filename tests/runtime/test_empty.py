"""Pipelines run on batches without samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types


def _pipeline(following: Callable[[Any], Any], **source: Any) -> Pipeline:
    pipeline = Pipeline(2, 1, None)
    with pipeline:
        outputs = following(fn.external_source(name="x", **source))
        pipeline.set_outputs(*(outputs if isinstance(outputs, tuple) else [outputs]))
    return pipeline


_FOLLOWING: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: x + 1,
    lambda x: fn.resize(x, size=3),
    lambda x: fn.cat(x, x),
]


@pytest.mark.parametrize("following", _FOLLOWING)
def test_no_samples_are_fed(following: Callable[[Any], Any]) -> None:
    pipeline = _pipeline(following)
    pipeline.feed_input("x", [])
    pipeline.feed_input("x", np.ones((2, 2, 2, 1), np.uint8))
    (empty,) = pipeline.run()
    assert (len(empty), empty.dtype) == (0, types.NO_TYPE)
    assert len(pipeline.run()[0]) == 2


@pytest.mark.parametrize("following", _FOLLOWING)
def test_what_repeats_is_at_first_empty(following: Callable[[Any], Any]) -> None:
    pipeline = _pipeline(following, repeat_last=True)
    assert [len(pipeline.run()[0]) for _ in range(2)] == [0, 0]
    pipeline.feed_input("x", np.ones((1, 2, 2, 1), np.uint8))
    assert [len(pipeline.run()[0]) for _ in range(2)] == [1, 1]


def test_what_repeats_clashes_with_samples_beside_it_until_it_is_fed() -> None:
    pipeline = _pipeline(lambda x: (x, fn.external_source(name="y")), repeat_last=True)
    pipeline.feed_input("y", [np.int32(1)])
    with pytest.raises(RuntimeError, match=r"Batch size clash.*0 in 'x', 1 in 'y'"):
        pipeline.run()


@pytest.mark.parametrize(
    "refusing",
    [
        lambda x: fn.cat(fn.reshape(x, shape=[1]), x),
        lambda x: fn.transpose(x, perm=[2, 0, 1]),
        lambda x: fn.decoders.image(x),
        lambda x: fn.bb_flip(fn.resize(x, size=2)),
        lambda x: fn.python_function(x, function=lambda _: 1 / 0),
    ],
)
def test_branches_that_no_sample_takes_are_no_errors(refusing: Callable[[Any], Any]) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True, prefetch_queue_depth=1)
    def chosen() -> Any:
        x = fn.external_source(name="x")
        if fn.external_source(name="flag"):
            x = refusing(x)
        return x

    pipeline = chosen()
    x = np.array([1, 2], np.int32)
    assert pipeline.run(x=x, flag=np.zeros(2, np.bool_))[0].as_array().tolist() == [1, 2]
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        pipeline.run(x=x, flag=np.ones(2, np.bool_))


def test_branches_are_taken_by_no_sample_in_some_batches() -> None:
    flags: list[np.ndarray] = []
    images = [np.full((2, 3), value, np.uint8) for value in (3, 5)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True, prefetch_queue_depth=1)
    def define() -> Any:
        x = fn.external_source(source=lambda: images, batch=True)
        if fn.external_source(source=lambda: flags, batch=True):
            y = x * x
            noise = fn.random.uniform(y, range=[1.0, 2.0], seed=3)
        else:
            y = x
            noise = fn.cast(x, dtype=types.FLOAT)
        return y, noise

    pipeline = define(exec_async=False, exec_pipelined=False)
    drawn = []
    for chosen in ((0, 0), (1, 0), (0, 0), (1, 1), (0, 0), (0, 1)):
        flags[:] = [np.array(value, bool) for value in chosen]
        out, noise = pipeline.run()
        for index, image in enumerate(images):
            found = np.asarray(out[index])
            assert found.dtype == np.uint8
            np.testing.assert_array_equal(found, image * image if chosen[index] else image)
        drawn += [float(np.asarray(noise[index])[0, 0]) for index in range(2) if chosen[index]]
    assert len(set(drawn)) == len(drawn) == 4
