"""Small batches are computed as one array, with the same values as samples computed one by one."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, math, pipeline_def
from penstock.operators.generic import tensor_subscript
from penstock.operators.math import arithmetic

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and_",
        "or_",
        "xor",
    )
} | {"min": math.min, "max": math.max, "clamp": lambda a, b: math.clamp(a, b, 90), "abs": lambda a, b: abs(a) - b}
TYPES = (np.uint8, np.int32, np.float32, np.uint64)
BATCH = 7


def results(work: Callable[[Any, Any], Any], one: list[np.ndarray], other: list[np.ndarray]) -> list[np.ndarray]:
    @pipeline_def(batch_size=len(one), num_threads=2, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return work(fn.external_source(name="one"), fn.external_source(name="other"))

    outputs = pipeline().run(one=one, other=other)[0]
    return [np.asarray(outputs.at(index)) for index in range(len(outputs))]


def samples(dtype: Any, shape: tuple[int, ...], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.integers(1, 100, shape)).astype(dtype) for _ in range(BATCH)]


@pytest.mark.parametrize(("name", "types"), [*itertools.product(OPERATORS, itertools.product(TYPES, TYPES[:3]))])
@pytest.mark.cases(20)
def test_values(name: str, types: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    work = OPERATORS[name]
    if name in ("and_", "or_", "xor") and np.float32 in types:
        with pytest.raises(RuntimeError, match="integral type"):
            results(work, samples(types[0], (), 0), samples(types[1], (), 1))
        return
    for shapes in (((), ()), ((3,), ()), ((2, 3), (3,)), ((1, 4), (5, 1))):
        one, other = samples(types[0], shapes[0], 0), samples(types[1], shapes[1], 1)
        together = results(work, one, other)
        with monkeypatch.context() as patch:
            patch.setattr(arithmetic, "_MAX_ELEMENTS_TOGETHER", 0)
            alone = results(work, one, other)
        for a, b in zip(together, alone, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_a_batch_is_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    evaluate = arithmetic.evaluate
    monkeypatch.setattr(arithmetic, "evaluate", lambda *given: calls.append(given[0]) or evaluate(*given))
    results(lambda a, b: (a + b) < 100, samples(np.int32, (), 0), samples(np.int32, (), 1))
    assert calls == ["add", "lt"]
    # Samples of several shapes are computed one by one.
    calls.clear()
    ragged = [np.ones(1 + number, np.float32) for number in range(BATCH)]
    results(operator.add, ragged, ragged)
    assert len(calls) == BATCH


def test_who_divides_by_zero_is_named() -> None:
    divisors = samples(np.int32, (), 1)
    divisors[4][...] = 0
    with pytest.raises(RuntimeError, match=r"sample #4 of the batch"):
        results(lambda a, b: a // b, samples(np.int32, (), 0), divisors)


def test_branches_of_conditionals_are_computed_at_once() -> None:
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, prefetch_queue_depth=1, enable_conditionals=True)
    def pipeline() -> Any:
        x = fn.external_source(name="x")
        y = x - 1
        if x > 3:
            y = x * 10
        return y

    outputs = pipeline().run(x=[np.array(number, np.int32) for number in range(BATCH)])[0]
    assert [int(outputs.at(number)) for number in range(BATCH)] == [-1, 0, 1, 2, 40, 50, 60]


SUBSCRIPTS: dict[str, Callable[[Any], Any]] = {
    "a number": lambda x: x[2],
    "the last, and a range": lambda x: x[-1, 1:3],
    "backwards": lambda x: x[::-1],
    "a column": lambda x: x[:, 1],
    "every other": lambda x: x[1::2, ::2],
    "nothing": lambda x: x[3:3],
}


@pytest.mark.parametrize("name", SUBSCRIPTS)
@pytest.mark.parametrize("contiguous", [True, False])
def test_slices(name: str, contiguous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    work, data = SUBSCRIPTS[name], samples(np.float32, (4, 5), 0)
    shift = samples(np.float32, (4, 5), 1)

    def sliced(a: Any, b: Any) -> Any:
        return work(a + b if contiguous else a) + work(b)

    together = results(sliced, data, shift)
    monkeypatch.setattr(tensor_subscript, "_MAX_ELEMENTS_TOGETHER", -1)
    for a, b in zip(together, results(sliced, data, shift), strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def test_an_index_out_of_range_names_a_sample() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Index 4 is out of range for dimension 0 of extent 4.*sample #0"):
        results(lambda a, b: a[4] + b, samples(np.float32, (4, 5), 0), samples(np.float32, (5,), 0))
