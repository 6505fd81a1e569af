"""Passes change no result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, math, pipeline_def, types


def operators_of(pipeline: Pipeline) -> list[str]:
    pipeline.build()
    return [step.node.schema.name for step in pipeline.executor.plan.operators]


def test_constants_are_folded() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        table = types.Constant(np.arange(4, dtype=np.float32), device="cpu")
        return fn.external_source(lambda: [np.float32(i) for i in range(2)]) + math.sqrt(table * 2)

    pipeline = define()
    assert operators_of(pipeline).count("_ArithmeticGenericOp") == 1
    expected = np.sqrt(np.arange(4, dtype=np.float32) * 2)
    for index, sample in enumerate(pipeline.run()[0]):
        assert np.allclose(np.array(sample), expected + index)


def test_random_operators_are_not_folded() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.random.uniform() + 0.0

    assert "random__Uniform" in operators_of(define())


@pytest.mark.parametrize(("condition", "expected"), [(True, 8), (False, 7)])
def test_constants_are_split_by_constants(condition: bool, expected: int) -> None:
    @pipeline_def(batch_size=2, num_threads=1, enable_conditionals=True)
    def define() -> Any:
        number = types.Constant(7, device="cpu")
        if types.Constant(condition, device="cpu"):
            number = number + 1
        return number

    pipeline = define()
    pipeline.build()
    assert [np.array(sample).item() for sample in pipeline.run()[0]] == [expected] * 2


def test_errors_in_constants_are_reported_when_running() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return types.Constant(np.int32([1]), device="cpu") // types.Constant(np.int32([0]), device="cpu")

    pipeline = define()
    pipeline.build()
    try:
        pipeline.run()
    except ValueError as error:
        assert "division by zero" in str(error)  # noqa: PT017
    else:
        raise AssertionError("the division by zero went unnoticed")
