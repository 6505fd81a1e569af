"""Debug mode: operators run when they are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import fn, math, types
from penstock.pipeline.debug import DataNodeDebug
from penstock.pipeline.experimental import pipeline_def

SETTINGS: dict[str, Any] = {"batch_size": 2, "num_threads": 1, "device_id": None, "seed": 42}
SAMPLES = [np.float32([1, 2]), np.float32([3, 4])]


def run(function: Any, **settings: Any) -> tuple[Any, ...]:
    return pipeline_def(debug=True, **(SETTINGS | settings))(function)().run()


def test_nodes_have_their_data() -> None:
    def define() -> Any:
        node = fn.external_source(lambda: SAMPLES, name="numbers")
        assert isinstance(node, DataNodeDebug)
        assert isinstance(node.get(), penstock.tensors.TensorListCPU)
        assert node.shape() == [(2,), (2,)]
        assert node.cpu() is node
        assert 'name="numbers"' in str(node)
        assert "TensorListCPU" in repr(node)
        return node

    (output,) = run(define)
    np.testing.assert_array_equal(output.as_array(), SAMPLES)


def test_arithmetic_and_indexing() -> None:
    def define() -> Any:
        node = fn.external_source(lambda: SAMPLES)
        np.testing.assert_array_equal((2 * node + 1).get().as_array(), [[3, 5], [7, 9]])
        np.testing.assert_array_equal((node > np.float32([1, 3])).get().as_array(), [[False, False], [True, True]])
        np.testing.assert_allclose(math.sqrt(node).get().as_array(), np.sqrt(SAMPLES))
        return -node, node[0], node % 2

    outputs = run(define)
    np.testing.assert_array_equal(outputs[1].as_array(), [1, 3])
    np.testing.assert_array_equal(outputs[2].as_array(), [[1, 0], [1, 0]])


@pytest.mark.parametrize("batch", [np.ones((2, 3), np.float32), [np.ones(3, np.float32)] * 2])
def test_foreign_data_are_batches(batch: Any) -> None:
    (output,) = run(lambda: fn.cast(batch, dtype=types.INT32))
    np.testing.assert_array_equal(output.as_array(), np.ones((2, 3)))


def test_what_operators_gave_can_be_given_again() -> None:
    def define() -> Any:
        node = fn.external_source(lambda: SAMPLES)
        return fn.cast(node.get(), dtype=types.INT32), np.float32([5, 6]), 7

    again, array, number = run(define)
    assert again.dtype == types.INT32
    # As without debug mode, each sample gets the same constants.
    np.testing.assert_array_equal(array.as_array(), [[5, 6], [5, 6]])
    np.testing.assert_array_equal(number.as_array(), [7, 7])


def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="batch size"):
        run(lambda: fn.cast(np.ones((3, 3)), dtype=types.INT32))

    def define() -> Any:
        fn.external_source(lambda: SAMPLES)
        return fn.external_source(lambda: SAMPLES[:1])

    with pytest.raises(RuntimeError, match="uniform"):
        run(define)


def test_programs_may_look_and_choose() -> None:
    def define() -> Any:
        node = fn.external_source(lambda: SAMPLES)
        if node.get().as_array().max() > 3:
            node = node * 10
        return node

    np.testing.assert_array_equal(run(define)[0].as_array(), np.multiply(SAMPLES, 10))


def test_conditionals_choose_per_sample() -> None:
    def define() -> Any:
        node = fn.external_source(lambda: [np.int32(1), np.int32(5)])
        if node > 3:
            result = node * 10
        else:
            result = node - 1
        return result

    np.testing.assert_array_equal(run(define, enable_conditionals=True)[0].as_array(), [0, 50])
    with pytest.raises(TypeError, match="enable_conditionals"):
        run(define)


def test_the_same_numbers_as_without_debug_mode() -> None:
    def define() -> Any:
        return fn.random.uniform(range=[0, 1]), fn.random.normal(shape=[3])

    eager = pipeline_def(define, debug=True, **SETTINGS)()
    ordinary = pipeline_def(define, debug=True, **SETTINGS)(debug=False)
    assert type(ordinary) is penstock.Pipeline
    for _ in range(3):
        for mine, others in zip(eager.run(), ordinary.run()):
            np.testing.assert_array_equal(mine.as_array(), others.as_array())


def test_sources_continue_and_end() -> None:
    def batches() -> Iterator[Any]:
        yield from ([np.int32(i)] * 2 for i in range(2))

    pipe = pipeline_def(lambda: fn.external_source(batches, cycle="raise"), debug=True, **SETTINGS)()
    for _ in range(2):
        assert [int(pipe.run()[0].at(0)) for _ in range(2)] == [0, 1]
        for _ in range(2):
            with pytest.raises(StopIteration):
                pipe.run()
        pipe.reset()


def test_sources_of_several_outputs() -> None:
    def define() -> Any:
        first, second = fn.external_source(lambda: (SAMPLES, SAMPLES[::-1]), num_outputs=2)
        return first, second

    pipe = pipeline_def(define, debug=True, **SETTINGS)()
    for _ in range(2):
        first, second = pipe.run()
        np.testing.assert_array_equal(first.as_array(), second.as_array()[::-1])


def test_feeding_by_name() -> None:
    pipe = pipeline_def(lambda: fn.external_source(name="x") + 1, debug=True, **SETTINGS)()
    pipe.feed_input("x", SAMPLES)
    np.testing.assert_array_equal(pipe.run()[0].as_array(), np.add(SAMPLES, 1))
    np.testing.assert_array_equal(pipe.run(x=np.array(SAMPLES[::-1]))[0].as_array(), np.add(SAMPLES, 1)[::-1])
    with pytest.raises(RuntimeError):
        pipe.run()


def test_arguments_may_change_from_batch_to_batch() -> None:
    factors = iter([2.0, 3.0])

    def define() -> Any:
        return fn.random.uniform(range=[0, next(factors)])

    pipe = pipeline_def(define, debug=True, **SETTINGS)()
    halves = pipe.run()[0].as_array() / 2
    thirds = pipe.run()[0].as_array() / 3
    assert not np.array_equal(halves, thirds)


def test_errors_come_from_the_line_that_caused_them() -> None:
    def define() -> Any:
        node = fn.external_source(lambda: SAMPLES)
        with pytest.raises(RuntimeError, match=r"test_debug_mode.py(.|\n)*fn\.crop\(node"):
            fn.crop(node, crop=(10, 10))
        with pytest.raises(RuntimeError, match="dtype"):
            fn.cast(node)
        return node

    run(define)


def test_what_debug_mode_cannot_do_says_so() -> None:
    pipe = pipeline_def(lambda: fn.external_source(lambda: SAMPLES), debug=True, **SETTINGS)()
    with pytest.raises(RuntimeError, match="no graph"):
        pipe.serialize()
    with pytest.raises(RuntimeError, match="run"):
        pipe.schedule_run()
    with pytest.raises(RuntimeError, match="output"):
        run(lambda: None)


def test_everything_runs_on_the_cpu_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DEVICE", "cpu")

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, debug=True)
    def define() -> Any:
        images = fn.external_source(lambda: [np.full((4, 6, 3), number, np.uint8) for number in range(2)])
        turned = fn.flip(images.gpu(), device="gpu", vertical=1)
        return turned + 1, turned.cpu()

    pipeline = define()
    raised, plain = pipeline.run()
    np.testing.assert_array_equal(raised.as_array()[:, 0, 0, 0], [1, 2])
    np.testing.assert_array_equal(plain.as_array()[:, 0, 0, 0], [0, 1])
