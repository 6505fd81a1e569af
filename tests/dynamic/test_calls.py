"""Calls of operators: when they run, with which arguments, and which errors they raise."""

from __future__ import annotations

import inspect
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import dynamic
from penstock.dynamic import Device, EvalContext, EvalMode
from penstock.errors import OperatorError
from penstock.runtime.workers import WorkerPool

pytestmark = pytest.mark.every_case


def test_modes_are_entered_in_turn() -> None:
    assert EvalMode.current() is EvalMode.default is EvalMode.eager
    with EvalMode.deferred:
        with EvalMode.sync_full:
            assert EvalMode.current() is EvalMode.sync_full
        assert EvalMode.current() is EvalMode.deferred
    assert EvalMode.deferred.value < EvalMode.eager.value < EvalMode.sync_cpu.value < EvalMode.sync_full.value


def test_deferred_calls_tell_types_before_they_run() -> None:
    with EvalMode.deferred:
        images = dynamic.zeros(shape=(6, 8, 3), dtype=dynamic.uint8)
        small = dynamic.resize(images, size=[2, 4], dtype=dynamic.float32)
        assert small._invocation_result._invocation._results is None
        assert (small.dtype, small.ndim, small.layout) == (dynamic.float32, 3, "HWC")
        assert small._invocation_result._invocation._results is None
        assert small.shape == (2, 4, 3)


def test_a_context_runs_what_is_left_when_it_ends() -> None:
    with EvalContext() as context, EvalMode.deferred:
        result = dynamic.tensor([1, 2]) + 1
        forgotten = [dynamic.tensor([1, 2]) + 1]
        forgotten.clear()
        assert len(context._pending) == 2
    assert result._invocation_result._invocation._results is not None


@pytest.mark.parametrize("mode", [EvalMode.deferred, EvalMode.eager], ids=lambda mode: mode.name)
def test_errors_tell_where_the_call_stood(mode: EvalMode) -> None:
    def crop_too_much() -> None:
        dynamic.crop(dynamic.zeros(shape=(10, 10, 3)), crop=(20, 20)).evaluate()

    with EvalMode.sync_cpu, pytest.raises(OperatorError) as direct:
        crop_too_much()
    with mode, pytest.raises(type(direct.value)) as told:
        crop_too_much()
    cause = told.value.__cause__
    assert str(cause) == str(direct.value)
    assert cause is not None
    frame = traceback.extract_tb(cause.__traceback__)[-1]
    assert (frame.filename, frame.name) == (__file__, "crop_too_much")
    assert frame.line is not None
    assert "dynamic.crop(" in frame.line
    assert "`penstock.dynamic.crop`" in str(told.value)
    assert f'{__file__}", line {frame.lineno}' in str(told.value)


def test_a_failed_call_fails_again() -> None:
    with EvalMode.deferred:
        result = dynamic.reshape(dynamic.tensor([1, 2, 3]), shape=[2])
        for _ in range(2):
            with pytest.raises(RuntimeError, match="It was called here"):
                result.evaluate()


def test_data_that_may_change_is_used_at_once() -> None:
    own = np.zeros((2, 2), np.float32)
    with EvalMode.deferred:
        result = dynamic.as_tensor(own) + 1
        own[:] = 7
        assert np.asarray(result).tolist() == [[1, 1], [1, 1]]


def test_wrong_arguments() -> None:
    image = dynamic.zeros(shape=(4, 4, 3))
    with pytest.raises(TypeError, match=r"^flip\(\).*horisontal.*horizontal"):
        dynamic.flip(image, horisontal=1)
    with pytest.raises(TypeError, match="'dtype'"):
        dynamic.cast(image)
    with pytest.raises(ValueError, match="Inconsistent batch size"):
        dynamic.batch([1, 2]) + dynamic.batch([1, 2, 3])
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match="Inconsistent batch size"):
            dynamic.random.uniform(range=dynamic.batch([[0, 1], [2, 3]]), batch_size=3).evaluate()
    with pytest.raises(ValueError, match="negative"):
        dynamic.random.uniform(batch_size=-1)
    with pytest.raises(TypeError, match="cannot be a batch"):
        dynamic.cast(image, dtype=dynamic.batch([1]))


def test_values_of_each_sample() -> None:
    images = dynamic.batch([np.zeros((4, 6, 3), np.uint8)] * 2, layout="HWC")
    sizes = dynamic.batch([[2, 3], [3, 2]])
    assert dynamic.resize(images, size=sizes).shape == [(2, 3, 3), (3, 2, 3)]
    assert dynamic.resize(images, size=np.array([2, 3])).shape == [(2, 3, 3)] * 2
    assert dynamic.resize(images.tensors[0], size=dynamic.tensor([2, 3])).shape == (2, 3, 3)


def test_arguments_of_different_types_are_not_mixed_up() -> None:
    numbers = dynamic.tensor([1, 2])
    assert ((numbers + 1).dtype, (numbers + 1.0).dtype, (numbers * True).dtype) == (
        dynamic.int32,
        dynamic.float32,
        dynamic.int32,
    )


def test_classes() -> None:
    flip = dynamic.ops.Flip(horizontal=1)
    array = np.arange(6).reshape(1, 2, 3)
    np.testing.assert_array_equal(np.asarray(flip(array)), array[:, ::-1])
    np.testing.assert_array_equal(np.asarray(flip(dynamic.as_tensor(array), vertical=1)), array[:, ::-1])
    with pytest.raises(ValueError, match="Invalid device"):
        dynamic.ops.Flip(device="invalid")


def test_functions_tell_their_arguments() -> None:
    parameters = list(inspect.signature(dynamic.random.uniform).parameters)
    assert parameters[:3] == ["shape_like", "batch_size", "device"]
    assert parameters[-1] == "rng"
    assert "seed" not in parameters
    # Signatures include deprecated arguments.
    assert {"image_type", "output_dtype"} <= set(inspect.signature(dynamic.crop).parameters)
    for function in dynamic.ops._all_functions:
        assert not [name for name in dir(function) if not name.startswith("_")]
        assert len(function.__doc__) > 20
        assert "DataNode" not in function.__doc__


def test_threads() -> None:
    try:
        dynamic.set_num_threads(3)
        assert (dynamic.get_num_threads(), EvalContext.current().num_threads) == (3, 3)
        assert EvalContext(num_threads=2).num_threads == 2
    finally:
        dynamic.set_num_threads(None)
    with pytest.raises(ValueError, match="at least 1"):
        dynamic.set_num_threads(0)
    for wrong in ("2", 1.5):
        for taking in (dynamic.set_num_threads, dynamic.ThreadPool):
            with pytest.raises(TypeError, match="must be an integer"):
                taking(wrong)
    pool = dynamic.ThreadPool(np.int64(2))
    assert (type(pool.num_threads), pool.num_threads, pool.device_id) == (int, 2, None)
    with pytest.raises(AttributeError):
        pool.num_threads = 3
    with pytest.raises(ValueError, match="either"):
        EvalContext(num_threads=1, thread_pool=dynamic.ThreadPool(1))


def test_each_thread_has_a_context() -> None:
    found: dict[int, tuple[object, list[int]]] = {}

    def work(number: int) -> None:
        result = dynamic.as_tensor(np.arange(4)) * 2 + number
        found[number] = (EvalContext.current(), np.asarray(result).tolist())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number][1] for number in range(4)] == [[n, 2 + n, 4 + n, 6 + n] for n in range(4)]
    assert len({id(context) for context, _ in found.values()}) == 4


def test_a_context_whose_device_cannot_be_used_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_device: Device) -> Device:
        raise RuntimeError("no such device")

    context, before = EvalContext(), EvalContext.current()
    with monkeypatch.context() as patch:
        patch.setattr(Device, "__enter__", fails)
        with pytest.raises(RuntimeError, match="no such device"), context:
            pass
    assert EvalContext.current() is before
    # The lock is free: another thread may use the context.
    used: list[EvalContext] = []

    def enter() -> None:
        with context:
            used.append(EvalContext.current())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert used == [context]


def test_a_context_is_one_thread_s() -> None:
    context = EvalContext()
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            with context:
                pass
        except RuntimeError as error:
            errors.append(error)

    with context:
        assert EvalContext.current() is context
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert "EvalContext" in str(errors[0])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: dynamic.resize(), "resize() missing 1 required positional argument: 'input'"),
        (lambda: dynamic.cat(), "cat() missing 1 required positional argument: 'input_0'"),
        (lambda: dynamic.crop([1], (2, 2)), "crop() takes 1 positional argument but 2 were given"),
        (lambda: dynamic.resize([1], None), "resize() takes 1 positional argument but 2 were given"),
        (lambda: dynamic.slice([1], [0], [1], [2]), "slice() takes from 1 to 3 positional arguments but 4 were given"),
        (lambda: dynamic.resize([1], foo=2), "resize() got an unexpected keyword argument 'foo'"),
        (lambda: dynamic.copy([1], preserve=True), "copy() got an unexpected keyword argument 'preserve'"),
        (lambda: dynamic.random.uniform(seed=5), "uniform() got an unexpected keyword argument 'seed'"),
        (lambda: dynamic.zeros(shape=1, rng=None), "zeros() got an unexpected keyword argument 'rng'"),
    ],
)
def test_calls_that_no_signature_allows(call: Callable[[], object], told: str) -> None:
    with EvalMode.deferred, pytest.raises(TypeError) as refused:
        call()
    assert str(refused.value).startswith(told)


def test_an_operator_that_ran_before_runs_on_new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[WorkerPool] = []
    original = WorkerPool.parallel

    def noted(self: WorkerPool, *given: Any, **named: Any) -> None:
        used.append(self)
        original(self, *given, **named)

    monkeypatch.setattr(WorkerPool, "parallel", noted)
    images = dynamic.as_batch([np.full((8, 9, 3), value, np.uint8) for value in range(4)])
    try:
        for count in (2, 3):
            dynamic.set_num_threads(count)
            used.clear()
            np.array(dynamic.resize(images, size=[5, 6], reference="pil").tensors[0])
            assert set(used) == {EvalContext.current().thread_pool.workers}
    finally:
        dynamic.set_num_threads(None)
