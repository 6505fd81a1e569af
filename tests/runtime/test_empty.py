"""Runs on batches without samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, types


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
