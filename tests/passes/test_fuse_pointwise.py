"""Fused pointwise operators round in the same way as separate ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, math, pipeline_def, types
from penstock.errors import OperatorError

RNG = np.random.default_rng(0)
Chain = Callable[[Any], Any]


def data_of(dtype: Any) -> list[np.ndarray]:
    """Return four samples: one of several pieces of work, one of a single piece, one of 18 elements, and an empty one."""
    shapes = [(300, 301, 3), (90, 80, 3), (2, 3, 3), (0, 5, 3)]
    if np.dtype(dtype).kind == "f":
        samples = [RNG.normal(0, 1e4, shape).astype(dtype) for shape in shapes]
        samples[0].flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
        return samples
    limits = np.iinfo(dtype)
    return [RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True) for shape in shapes]


def pipeline_of(fused: bool, data: list[np.ndarray], chain: Chain, layout: str | None = "HWC") -> Pipeline:
    @pipeline_def(batch_size=len(data), num_threads=2, seed=5, prefetch_queue_depth=1)
    def define() -> Any:
        return chain(fn.external_source(lambda: data, layout=layout))

    pipeline: Pipeline = define(passes=["fuse_pointwise"] if fused else [])
    pipeline.build()
    return pipeline


def operators_of(pipeline: Pipeline) -> list[str]:
    return [step.node.schema.name for step in pipeline.executor.plan.operators]


def cast(x: Any, name: str) -> Any:
    return fn.cast(x, dtype=getattr(types, name))


CHAINS: list[Chain] = [
    lambda x: cast((cast(x, "FLOAT") - 120.25) * 0.3 + 3, "UINT8"),
    lambda x: cast(cast(x, "UINT8") + 200, "INT16") // 7 % 5,
    lambda x: cast(-x * 1000003, "FLOAT16"),
    lambda x: cast(cast(x, "FLOAT16"), "FLOAT") / 3,
    lambda x: cast(math.clamp(x * 0.7, -40, 50), "INT8"),
    lambda x: math.sqrt(abs(x * 1)) * 5,
    lambda x: cast(cast(x, "INT32") & 255, "UINT8") ^ 7,
    lambda x: cast(cast(x, "BOOL"), "FLOAT") * 2,
    lambda x: math.max(5, 100 - cast(x, "INT64")),
    lambda x: cast(x, "FLOAT64") * 0.1 + 1,
    lambda x: cast(x, "FLOAT") + 0.0 - 0.0,
    lambda x: fn.brightness(fn.contrast(cast(x, "UINT8"), contrast=1.3), brightness=0.7, dtype=types.FLOAT) / 255,
    lambda x: cast(
        fn.brightness_contrast(cast(x, "FLOAT"), brightness=fn.random.uniform(range=[0.5, 1.5]), contrast=0.4), "INT32"
    ),
]


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32])
def test_fused_equals_unfused(chain: Chain, dtype: Any) -> None:
    data = data_of(dtype)
    one, other = pipeline_of(True, data, chain), pipeline_of(False, data, chain)
    assert "_fused__Pointwise" in operators_of(one)
    assert "_fused__Pointwise" not in operators_of(other)
    for _ in range(2):
        a, b = one.run()[0], other.run()[0]
        assert (a.layout(), a.dtype, a.shape()) == (b.layout(), b.dtype, b.shape())
        for x, y in zip(a, b):
            assert np.array(x).tobytes() == np.array(y).tobytes()


def test_arguments_of_long_chains_keep_their_random_numbers() -> None:
    def chain(x: Any) -> Any:
        for _ in range(12):
            x = fn.brightness(x, brightness=fn.random.uniform(range=[0.8, 1.25]), dtype=types.FLOAT)
        return x

    data = data_of(np.uint8)
    one, other = pipeline_of(True, data, chain), pipeline_of(False, data, chain)
    assert operators_of(one).count("_fused__Pointwise") == 1
    for x, y in zip(one.run()[0], other.run()[0]):
        assert np.array_equal(np.array(x), np.array(y))


@pytest.mark.parametrize("layout", ["FHWC", None])
def test_frames_are_seen_one_by_one(layout: str | None) -> None:
    def chain(x: Any) -> Any:
        factors = fn.per_frame(fn.random.uniform(range=[0.5, 1.5], shape=[3]))
        return cast(fn.brightness(x, brightness=factors), "FLOAT") * 2

    data = [RNG.integers(0, 255, (3, 80, 90, 3), np.uint8) for _ in range(2)]
    outputs = [pipeline_of(fused, data, chain, layout).run()[0] for fused in (True, False)]
    assert outputs[0].layout() == outputs[1].layout()
    for x, y in zip(*outputs):
        assert np.array_equal(np.array(x), np.array(y))


@pytest.mark.parametrize(
    ("chain", "operator"),
    [
        (lambda x: cast(x, "INT32") // types.Constant(0) + 1, "penstock.math.div"),
        (lambda x: fn.brightness(cast(x, "INT64"), brightness=2.0), "penstock.fn.brightness"),
    ],
)
@pytest.mark.parametrize("shape", [(200, 200, 3), (4, 4, 3), (0, 4, 3)])
def test_errors_name_the_operator_that_is_at_fault(chain: Chain, operator: str, shape: tuple[int, ...]) -> None:
    messages = []
    for fused in (True, False):
        pipeline = pipeline_of(fused, [np.zeros(shape, np.uint8)], chain)
        with pytest.raises(OperatorError) as caught:
            pipeline.run()
        assert caught.value.operator == operator
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_only_what_is_used_once_and_exact_is_fused() -> None:
    def used_twice(x: Any) -> Any:
        y = cast(x, "FLOAT")
        return y * 2, y

    def two_operands(x: Any) -> Any:
        return cast(x * x, "FLOAT")

    def transcendental(x: Any) -> Any:
        return math.sin(cast(x, "FLOAT"))

    for chain in (used_twice, two_operands, transcendental):
        assert "_fused__Pointwise" not in operators_of(pipeline_of(True, data_of(np.uint8), chain))
