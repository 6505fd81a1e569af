"""Limits on batches' memory: limits of requests, and budgets, for which batches wait."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import LimitError, PenstockError
from penstock.runtime import memory
from penstock.runtime.memory import (
    SMALL_BATCH_BYTES,
    BatchMemory,
    FixedReservation,
    MemoryBudget,
    Reservation,
)
from penstock.tensors import HostPool

MEBIBYTE = 1 << 20
LARGE = 3 * SMALL_BATCH_BYTES


def reservation(limit: int | None, *others: MemoryBudget) -> Reservation:
    return Reservation([MemoryBudget(limit, "memory_budget"), *others])


# -- budgets -----------------------------------------------------------------------------------------------------------


def test_a_reservation_grows_as_long_as_there_is_room() -> None:
    own = reservation(100)
    assert own.grow(60)
    assert own.grow(100)
    assert not own.grow(101)
    assert own.size == 100
    own.give_back()
    assert own.size == 0
    assert own.grow(100)


def test_all_budgets_must_have_room() -> None:
    shared, small = MemoryBudget(100, "memory_budget"), MemoryBudget(50, "max_model_memory")
    own, other = Reservation([shared, small]), Reservation([shared])
    assert not own.grow(60)
    assert other.grow(60)
    assert shared.reserved_bytes == 60
    assert small.reserved_bytes == 0
    assert not own.grow(50)
    assert own.exceeded(60) is small
    assert own.exceeded(50) is None


def test_who_waits_is_admitted_in_turn() -> None:
    shared = MemoryBudget(100, "memory_budget")
    first, large, small = (Reservation([shared]) for _ in range(3))
    assert first.grow(60)
    order: list[str] = []

    def wait(name: str, own: Reservation, size: int) -> threading.Thread:
        def run() -> None:
            assert own.wait(size, 60)
            order.append(name)

        thread = threading.Thread(target=run)
        thread.start()
        while not any(waiting.size == size for waiting in memory._waiting):
            pass
        return thread

    threads = [wait("large", large, 90), wait("small", small, 10)]
    # The budget has enough for the small batch, which waits nevertheless, as the large batch asked first.
    assert not Reservation([shared]).grow(10)
    assert not order
    first.give_back()
    for thread in threads:
        thread.join()
    assert sorted(order) == ["large", "small"]
    assert shared.reserved_bytes == 100


def test_waiting_for_one_model_does_not_hold_up_another() -> None:
    shared, busy = MemoryBudget(100, "memory_budget"), MemoryBudget(10, "max_model_memory")
    holder, waiting, other = Reservation([shared, busy]), Reservation([shared, busy]), Reservation([shared])
    assert holder.grow(10)
    thread = threading.Thread(target=lambda: waiting.wait(10, 60))
    thread.start()
    while not memory._waiting:
        pass
    assert other.wait(50, 60)
    holder.give_back()
    thread.join()
    assert waiting.size == 10


def test_waiting_ends() -> None:
    shared = MemoryBudget(100, "memory_budget")
    holder, late = Reservation([shared]), Reservation([shared])
    assert holder.grow(100)
    assert not late.wait(1, 0.01)
    assert not memory._waiting
    holder.give_back()
    assert late.wait(100, 0)


def test_unused_blocks_are_released_when_memory_gets_scarce() -> None:
    pool, budget = HostPool(), MemoryBudget(4 * MEBIBYTE, "memory_budget")
    budget.add_pool(pool)
    pool.take(3 * MEBIBYTE)
    own = Reservation([budget])
    assert own.grow(MEBIBYTE)
    assert pool.reserved >= 3 * MEBIBYTE
    assert own.grow(2 * MEBIBYTE)
    assert pool.reserved == 0


# -- batches -----------------------------------------------------------------------------------------------------------


def made(define: Callable[..., Any], batch_size: int, device: str = "cpu") -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        data = fn.external_source(name="data")
        sizes = fn.external_source(name="size")
        return define(data, sizes)

    pipe = pipeline()
    pipe.build()
    return pipe


def run(
    define: Callable[..., Any], sizes: Sequence[tuple[int, int]], own: BatchMemory, frames: int = 0
) -> tuple[list[np.ndarray], dict[int, PenstockError]]:
    pipe = made(define, len(sizes))
    data = np.zeros((frames, 8, 8, 3) if frames else (8, 8, 3), np.uint8)
    pipe.feed_input("data", [data] * len(sizes), layout="FHWC" if frames else "HWC")
    pipe.feed_input("size", [np.array(size, np.float32) for size in sizes])
    result = pipe.executor.run_once(isolate=True, allowance=own)
    shapes = [np.array(sample.shape) for sample in result.outputs[0].samples]
    pipe.close()
    return shapes, result.failures


def resized(data: Any, size: Any) -> Any:
    return fn.resize(data, size=size)


# Images of 3, 12 and 48 MB.
SMALL, MEDIUM, HUGE = (1000, 1000), (2000, 2000), (4000, 4000)


def test_a_sample_that_takes_too_much_fails_alone() -> None:
    shapes, failures = run(resized, [SMALL, HUGE, SMALL], BatchMemory(20_000_000, [1, 1, 1], reservation(None)))
    assert [*failures] == [1]
    assert isinstance(failures[1], LimitError)
    text = str(failures[1])
    assert "resize" in text
    assert "48000000 bytes for its result of 4000x4000x3" in text
    assert "the model's `max_memory` allows a request only 20000000" in text
    assert [tuple(shape) for shape in shapes] == [(1000, 1000, 3), (0, 0, 0), (1000, 1000, 3)]


def test_a_request_may_take_what_its_samples_take_together() -> None:
    sizes = [MEDIUM, MEDIUM, MEDIUM]
    _, failures = run(resized, sizes, BatchMemory(20_000_000, [2, 1], reservation(None)))
    assert sorted(failures) == [0, 1]
    assert "The 2 samples of the request take 24000000 bytes" in str(failures[0])
    assert not run(resized, sizes, BatchMemory(20_000_000, [1, 1, 1], reservation(None)))[1]


def test_what_is_still_held_counts() -> None:
    def two(data: Any, size: Any) -> Any:
        first = fn.resize(data, size=size)
        return first, fn.resize(data, size=size, interp_type=types.INTERP_NN)

    assert not run(two, [MEDIUM], BatchMemory(25_000_000, [1], reservation(None)))[1]
    _, failures = run(two, [MEDIUM], BatchMemory(23_000_000, [1], reservation(None)))
    assert "in addition to 12000" in str(failures[0])


def test_frames_of_a_sequence_count_together() -> None:
    assert not run(resized, [SMALL, SMALL], BatchMemory(20_000_000, [1, 1], reservation(None)), frames=6)[1]
    _, failures = run(resized, [SMALL, MEDIUM], BatchMemory(20_000_000, [1, 1], reservation(None)), frames=6)
    assert [*failures] == [1]


def test_operators_that_infer_nothing_are_limited_too() -> None:
    def tiled(data: Any, size: Any) -> Any:
        return fn.cat(*[fn.resize(data, size=size)] * 4, axis=0)

    _, failures = run(tiled, [SMALL], BatchMemory(10_000_000, [1], reservation(None)))
    assert "12000000 bytes for its result of 4000x1000x3" in str(failures[0])


def test_small_batches_take_nothing_of_budgets() -> None:
    own = reservation(1)
    assert not run(resized, [SMALL, MEDIUM], BatchMemory(None, [1, 1], own))[1]
    assert own.size == 0


def test_large_batches_take_what_they_need_of_budgets() -> None:
    own = reservation(10 * SMALL_BATCH_BYTES)
    assert not run(resized, [HUGE, HUGE], BatchMemory(None, [1, 1], own))[1]
    assert 96_000_000 <= own.size < 97_000_000


def test_a_batch_that_finds_no_room_says_what_it_needs() -> None:
    own = reservation(SMALL_BATCH_BYTES)
    batch = BatchMemory(None, [1, 1], own)
    _, failures = run(resized, [HUGE, HUGE], batch)
    assert sorted(failures) == [0, 1]
    assert 96_000_000 <= batch.wanted < 97_000_000
    assert own.size == 0


def test_many_threads_may_decode_photographs_of_a_batch_that_takes_nothing_from_budgets() -> None:
    threads, count = 16, 32

    @pipeline_def(batch_size=count, num_threads=threads, device_id=None, exec_async=False, exec_pipelined=False)
    def thumbnails() -> Any:
        return fn.resize(fn.decoders.image(fn.external_source(name="files")), size=8)

    buffer = io.BytesIO()
    Image.new("RGB", (1400, 900)).save(buffer, "JPEG")
    pipe = thumbnails()
    pipe.build()
    for own, fits in ((FixedReservation(threads), True), (FixedReservation(1), False)):
        batch = BatchMemory(None, [1] * count, own)
        pipe.feed_input("files", [np.frombuffer(buffer.getvalue(), np.uint8)] * count)
        failures = pipe.executor.run_once(isolate=True, allowance=batch).failures
        assert (not failures, not batch.wanted) == (fits, fits)
    pipe.close()


def test_a_light_batch_reserves_without_a_closer_look(monkeypatch: pytest.MonkeyPatch) -> None:
    closely = []
    examined = BatchMemory._examined
    monkeypatch.setattr(BatchMemory, "_examined", lambda *given: closely.append(given) or examined(*given))
    budget = MemoryBudget(16 * LARGE, "memory_budget")
    with Reservation([budget]) as own:
        assert not run(resized, [HUGE, HUGE], BatchMemory(LARGE, [1, 1], own))[1]
        assert not closely
        assert 96_000_000 <= own.size <= LARGE
    assert budget.reserved_bytes == 0
    # A batch that reserves a larger share of the budget is tracked exactly: memory that it has freed is no longer counted.
    assert not run(resized, [HUGE, HUGE], BatchMemory(None, [1, 1], reservation(8 * SMALL_BATCH_BYTES)))[1]
    assert closely
