"""Sources, epochs and prefetching."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types


def batch(value: int, count: int = 2) -> list[np.ndarray]:
    return [np.full(2, value, np.int32)] * count


def named(**options: Any) -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=1, **options)
    def define() -> Any:
        return fn.external_source(name="x")

    return define()


def first_value(outputs: Any) -> int:
    return int(outputs[0].at(0)[0])


def test_feeding_ahead() -> None:
    pipeline = named()
    for i in range(pipeline.input_feed_count("x")):
        pipeline.feed_input("x", batch(i))
    received = []
    for i in range(4):
        pipeline.feed_input("x", batch(10 + i))
        received.append(first_value(pipeline.run()))
    assert received == [0, 1, 10, 11]


def test_inputs_that_a_pipeline_does_not_have() -> None:
    for options, error in (({}, KeyError), ({"exec_dynamic": False}, RuntimeError)):
        with pytest.raises(error, match="have an input"):
            named(**options).input_feed_count("y")


def test_run_with_named_inputs() -> None:
    assert first_value(named(prefetch_queue_depth=1).run(x=batch(7))) == 7
    assert first_value(named(exec_pipelined=False, exec_async=False).run(x=batch(8))) == 8
    with pytest.raises(RuntimeError, match="prefetch_queue_depth"):
        named().run(x=batch(1))
    with pytest.raises(KeyError, match="y"):
        named(prefetch_queue_depth=1).run(y=batch(1))


def test_nothing_fed() -> None:
    with pytest.raises(IndexError):
        named().run()


def test_too_many_samples() -> None:
    with pytest.raises(RuntimeError, match="batch_size <= 2, actual: 3"):
        named().feed_input("x", batch(1, 3))


def test_what_was_fed_may_change_afterwards() -> None:
    pipeline = named(prefetch_queue_depth=1)
    data = np.zeros((2, 3), np.float32)
    pipeline.feed_input("x", data)
    data[:] = 9
    assert not pipeline.run()[0].as_array().any()


def test_results_that_are_kept_do_not_change() -> None:
    pipeline = named(prefetch_queue_depth=1)
    size = 50_000
    kept = [pipeline.run(x=np.full((2, size), i, np.int32))[0] for i in range(5)]
    assert [int(b.at(1)[-1]) for b in kept] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"exec_pipelined": False}, {"exec_async": False}])
def test_epochs_of_a_callback(options: dict[str, Any]) -> None:
    calls: list[int] = []

    def callback(i: int) -> list[np.ndarray]:
        calls.append(i)
        if i >= 3:
            raise StopIteration
        return batch(i)

    @pipeline_def(batch_size=2, num_threads=1, **options)
    def define() -> Any:
        return fn.external_source(callback)

    pipeline = define()
    for _ in range(2):
        received = []
        for _ in range(3):
            received.append(first_value(pipeline.run()))
        with pytest.raises(StopIteration):
            pipeline.run()
        pipeline.reset()
        assert received == [0, 1, 2]
    assert calls == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("cycle", "expected"), [(None, [0, 1, "stop", "stop"]), ("quiet", [0, 1, 0, 1]), ("raise", [0, 1, "stop", 0])]
)
def test_cycling_through_an_iterable(cycle: Any, expected: list[Any]) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.external_source([batch(0), batch(1)], cycle=cycle)

    pipeline = define()
    received: list[Any] = []
    for _ in range(4):
        try:
            received.append(first_value(pipeline.run()))
        except StopIteration:
            received.append("stop")
            pipeline.reset()
    assert received == expected


def counting(count: int) -> list[list[np.ndarray]]:
    return [batch(value) for value in range(count)]


def generator_of(count: int) -> Any:
    def generate() -> Any:
        yield from counting(count)

    return generate


def callback_of(count: int) -> Any:
    def call(i: int) -> list[np.ndarray]:
        if i >= count:
            raise StopIteration
        return batch(i)

    return call


def epoch_of(pipeline: Pipeline) -> list[tuple[int, ...]]:
    received = []
    try:
        while True:
            received.append(tuple(int(output.at(0)[0]) for output in pipeline.run()))
    except StopIteration:
        pipeline.reset()
        return received


LIST = (counting, {"cycle": "raise"})
QUIET = (counting, {"cycle": "quiet"})
GENERATOR = (generator_of, {"cycle": "raise"})
PARALLEL = (generator_of, {"cycle": "raise", "parallel": True})
CALLBACK = (callback_of, {})
PARALLEL_CALLBACK = (callback_of, {"parallel": True})
ALIGNED = [[(0, 0), (1, 1), (2, 2)]] * 4
SHORTER = [[(0, 0), (1, 1)]] * 4
SECOND_IS_SHORTER = [[(0, 0), (1, 1)], [], [(0, 1)], [(2, 0)]]
FIRST_IS_SHORTER = [[(0, 0), (1, 1)], [], [(1, 0)], [(0, 2)]]


# The expected values were recorded from four epochs of DALI 2.4.
@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"exec_pipelined": False, "exec_async": False}])
@pytest.mark.parametrize(
    ("first", "second", "lengths", "expected"),
    [
        (LIST, LIST, (3, 3), ALIGNED),
        (GENERATOR, GENERATOR, (3, 3), ALIGNED),
        (GENERATOR, LIST, (3, 3), ALIGNED),
        (PARALLEL, PARALLEL, (3, 3), ALIGNED),
        (PARALLEL, LIST, (3, 3), ALIGNED),
        (LIST, PARALLEL, (3, 3), ALIGNED),
        (CALLBACK, LIST, (3, 3), ALIGNED),
        (CALLBACK, CALLBACK, (3, 2), SHORTER),
        (CALLBACK, QUIET, (2, 3), SHORTER),
        (LIST, PARALLEL_CALLBACK, (2, 3), SHORTER),
        (LIST, LIST, (3, 2), SECOND_IS_SHORTER),
        (LIST, LIST, (2, 3), FIRST_IS_SHORTER),
        (PARALLEL, PARALLEL, (3, 2), SECOND_IS_SHORTER),
        (LIST, PARALLEL, (2, 3), FIRST_IS_SHORTER),
        (PARALLEL_CALLBACK, LIST, (2, 3), [[(0, 0), (1, 1)], [], [(0, 0), (1, 1)], []]),
    ],
)
def test_sources_stay_in_line(options: Any, first: Any, second: Any, lengths: Any, expected: Any) -> None:
    @pipeline_def(batch_size=2, num_threads=1, **options)
    def define() -> Any:
        pairs = zip((first, second), lengths)
        return tuple([fn.external_source(make(length), batch=True, **settings) for (make, settings), length in pairs])

    pipeline = define()
    assert [epoch_of(pipeline) for _ in range(4)] == expected


def test_samples_one_at_a_time() -> None:
    seen = []

    def callback(info: types.SampleInfo) -> np.ndarray:
        seen.append((info.idx_in_epoch, info.idx_in_batch, info.iteration))
        return np.int32(info.idx_in_epoch)

    @pipeline_def(batch_size=3, num_threads=1, prefetch_queue_depth=1)
    def define() -> Any:
        return fn.external_source(callback, batch=False)

    pipeline = define()
    assert [np.array(t).tolist() for _ in range(2) for t in pipeline.run()[0]] == [0, 1, 2, 3, 4, 5]
    assert seen[:4] == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 1)]


def test_several_outputs() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return tuple(fn.external_source(lambda: (batch(1), batch(2)), num_outputs=2))

    assert [first_value((b,)) for b in define().run()] == [1, 2]


def test_errors_of_callbacks_come_as_they_are() -> None:
    def callback(i: int) -> Any:
        raise LookupError("mine")

    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.external_source(callback)

    with pytest.raises(LookupError, match="mine"):
        define().run()


def test_promises_about_data_are_held() -> None:
    for options, data in (
        ({"dtype": types.FLOAT}, batch(1)),
        ({"ndim": 2}, batch(1)),
        ({"layout": "HW"}, batch(1)),
    ):

        @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
        def define(options: Any = options) -> Any:
            return fn.external_source(name="x", **options)

        with pytest.raises(RuntimeError):
            define().run(x=data)


def test_sources_of_different_batch_sizes() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.external_source(lambda: batch(1)), fn.external_source(lambda: batch(1, 1))

    with pytest.raises(RuntimeError, match="Batch size clash"):
        define().run()


def test_operators_without_inputs_follow_the_batch() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.external_source(lambda: batch(1, 1)), fn.random.uniform(), types.Constant(3), 5

    assert [len(b) for b in define().run()] == [1, 1, 1, 1]


def test_a_failed_run_leaves_the_pipeline_usable() -> None:
    def callback(i: int) -> Any:
        return [np.zeros((1 if i == 1 else 4, 4, 3), np.uint8)] * 2

    @pipeline_def(batch_size=2, num_threads=2)
    def define() -> Any:
        return fn.crop(fn.external_source(callback), crop=(2, 2))

    pipeline = define()
    pipeline.run()
    with pytest.raises(RuntimeError, match="sample #0"):
        pipeline.run()
    assert pipeline.run()[0].shape() == [(2, 2, 3)] * 2


def test_scheduling_by_hand() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.external_source(lambda i: batch(i))

    pipeline = define()
    pipeline.build()
    for i in range(3):
        pipeline.schedule_run()
        assert first_value(pipeline.share_outputs()) == i
        pipeline.release_outputs()
    with pytest.raises(RuntimeError, match="Mixing pipeline API"):
        pipeline.run()


def test_subclass_with_iter_setup() -> None:
    class Mine(Pipeline):
        def __init__(self) -> None:
            super().__init__(2, 1)

        def define_graph(self) -> Any:
            self.x = fn.external_source(name="xx")
            return self.x

        def iter_setup(self) -> None:
            self.feed_input(self.x, batch(7))

    assert first_value(Mine().run()) == 7


def test_threads_give_the_same_as_one() -> None:
    def run(threads: int) -> np.ndarray:
        @pipeline_def(batch_size=16, num_threads=threads, seed=5)
        def define() -> Any:
            rng = np.random.default_rng(0)
            data = [rng.integers(0, 255, (40 + i, 50, 3), np.uint8) for i in range(16)]
            image = fn.external_source(lambda: data, layout="HWC")
            image = fn.resize(image, resize_x=fn.random.uniform(range=[20.0, 60.0]), resize_y=30)
            return fn.crop_mirror_normalize(image, crop=(20, 20), mirror=fn.random.coin_flip())

        return define().run()[0].as_array().copy()

    assert np.array_equal(run(1), run(4))


def test_one_fed_batch_is_one_run_however_late_it_is_taken() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=3)
    def fed():
        return fn.external_source(name="data") * 1

    class Late(contextlib.AbstractContextManager[None]):
        def __enter__(self) -> None:
            time.sleep(0.05)

        def __exit__(self, *_: object) -> None:
            pass

    pipe = fed()
    pipe.build()
    pipe.executor.run_context = Late()
    for number in range(3):
        pipe.feed_input("data", [np.array([number])])
        assert pipe.run()[0].at(0).tolist() == [number]
        time.sleep(0.2)
