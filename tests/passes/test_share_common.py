"""Equal computations in a graph run once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types

NUMBERS = [np.float32([1, 2, 3]) * index for index in range(2)]


def numbers() -> Any:
    return fn.external_source(lambda: NUMBERS, name="numbers")


def pipeline_of(define: Callable[[], Any], shared: bool = True) -> Pipeline:
    pipeline: Pipeline = pipeline_def(define, batch_size=2, num_threads=1, seed=1, enable_conditionals=True)(
        passes=["share_common"] if shared else []
    )
    pipeline.build()
    return pipeline


def operators_of(define: Callable[[], Any], shared: bool = True) -> list[str]:
    return [step.node.schema.name for step in pipeline_of(define, shared).executor.plan.operators]


def test_equal_operators_become_one_and_so_do_those_after_them() -> None:
    def define() -> Any:
        x = numbers()
        return fn.reshape(fn.cast(x * 2, dtype=types.INT32), shape=[-1]) + fn.cast(x * 2, dtype=types.INT32)

    assert operators_of(define, False).count("Cast") == 2
    names = operators_of(define)
    assert (names.count("Cast"), names.count("_ArithmeticGenericOp")) == (1, 2)
    for sample, x in zip(pipeline_of(define).run()[0], NUMBERS):
        assert np.array(sample).tolist() == (4 * x).tolist()


def test_equal_constants_are_shared_too() -> None:
    def define() -> Any:
        x = numbers()
        return fn.stack(x * types.Constant([1, 2, 3], device="cpu"), x * types.Constant([1, 2, 3], device="cpu"))

    assert operators_of(define, False).count("Constant") == 2
    assert operators_of(define).count("Constant") == operators_of(define).count("_ArithmeticGenericOp") == 1


def test_outputs_keep_their_names_and_memory() -> None:
    def define() -> Any:
        x = numbers()
        return fn.copy(x, name="one"), fn.copy(x, name="other"), fn.reductions.sum(fn.copy(x))

    pipeline = pipeline_of(define)
    names = [step.node.name for step in pipeline.executor.plan.operators if step.node.schema.name == "Copy"]
    assert names == ["one", "other"]
    one, other, _ = pipeline.run()
    assert not np.shares_memory(np.asarray(one[1]), np.asarray(other[1]))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: fn.cast(x, dtype=types.FLOAT), lambda x: fn.cast(x, dtype=types.FLOAT16)),
        (lambda x: x * 1, lambda x: x * 1.0),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: fn.pad(x, fill_value=0.0), lambda x: fn.pad(x, fill_value=-0.0)),
        (lambda x: fn.pad(x, fill_value=1.0), lambda x: fn.pad(x, fill_value=2.0)),
        (lambda x: x - fn.random.uniform(), lambda x: x - fn.random.uniform()),
        (lambda x: fn.copy(x, preserve=True), lambda x: fn.copy(x, preserve=True)),
        (lambda x: fn.python_function(x, function=np.sqrt), lambda x: fn.python_function(x, function=np.sqrt)),
        (lambda x: x * types.Constant([1, 2, 3], device="cpu"), lambda x: x * types.Constant([1, 2, 4], device="cpu")),
    ],
)
def test_what_differs_or_has_effects_is_not_shared(first: Any, second: Any) -> None:
    def define() -> Any:
        x = numbers()
        return fn.stack(first(x), second(x))

    assert operators_of(define) == operators_of(define, False)


def test_branches_share_only_what_is_of_the_same_samples() -> None:
    def define() -> Any:
        x = numbers()
        if fn.reductions.sum(x) > 0.0:
            y = fn.cast(x * 2, dtype=types.INT32) + fn.cast(x * 2, dtype=types.INT32)
        else:
            y = fn.cast(x * 2, dtype=types.INT32)
        return y

    assert operators_of(define, False).count("Cast") == 3
    assert operators_of(define).count("Cast") == 2
    assert [np.array(y).tolist() for y in pipeline_of(define).run()[0]] == [[0, 0, 0], [4, 8, 12]]


def test_an_error_names_the_first_of_them() -> None:
    def define() -> Any:
        x = numbers()
        first = fn.crop(x, crop=(1, 1))
        return first + fn.crop(x, crop=(1, 1))

    messages = []
    for shared in (True, False):
        with pytest.raises(RuntimeError, match=r"fn\.crop") as caught:
            pipeline_of(define, shared).run()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
