"""DALI's private module `_multiproc`, whose batches, queues and workers programs use directly."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import BaseContext
from typing import NamedTuple

import numpy as np
import pytest

from penstock.compat.multiproc.messages import SampleRange, ShmMessageDesc, TaskArgs
from penstock.compat.multiproc.pool import WorkerPool
from penstock.compat.multiproc.shared_batch import BufShmChunk, SharedBatchMeta, SharedBatchWriter, deserialize_batch
from penstock.compat.multiproc.shared_queue import ShmQueue
from penstock.compat.private.external_source_impl import get_callback_from_source
from penstock.data_types import SampleInfo
from penstock.runtime.sources import Source


class Group(NamedTuple):
    source_desc: Source
    batch: bool


def group(source: object, batch: bool = False) -> Group:
    return Group(get_callback_from_source(source, None)[1], batch)


def place_of(info: SampleInfo) -> np.ndarray:
    return np.array([info.idx_in_epoch, info.idx_in_batch, info.iteration])


def failing(info: SampleInfo) -> np.ndarray:
    raise KeyError("no such sample")


class Counting:
    """An iterable source, which only one worker reads."""

    def __iter__(self) -> Counting:
        self.count = 0
        return self

    def __next__(self) -> list[np.ndarray]:
        self.count += 1
        return [np.array([self.count])] * self.count


def test_a_batch_through_shared_memory() -> None:
    batch = [np.arange(12.0).reshape(3, 4), np.zeros((0, 2), np.int8), np.full(70, 5, np.int32)]
    chunk = BufShmChunk.allocate("chunk", 8)
    meta = SharedBatchMeta.from_writer(SharedBatchWriter(chunk, batch))
    for received, sent in zip(deserialize_batch(chunk, meta), batch, strict=True):
        assert received.dtype == sent.dtype
        np.testing.assert_array_equal(received, sent)
    assert chunk.capacity > 8
    chunk.close()


def test_a_queue_keeps_order_and_capacity() -> None:
    queue = ShmQueue(multiprocessing.get_context("fork"), 3)
    queue.put([ShmMessageDesc(1, -1, 2**64 - 1, 0, 5), ShmMessageDesc(2, 0, 0, 0, 0)])
    assert [message.get_values() for message in queue.get() or ()] == [(1, -1, 2**64 - 1, 0, 5)]
    queue.put([ShmMessageDesc(3, 0, 0, 0, 0), ShmMessageDesc(4, 0, 0, 0, 0)])
    with pytest.raises(RuntimeError, match="The queue is full"):
        queue.put([ShmMessageDesc(5, 0, 0, 0, 0)])
    assert [message.worker_id for message in queue.get(num_samples=None) or ()] == [2, 3, 4]
    with pytest.raises(RuntimeError, match="Failed to serialize object as C-like structure"):
        queue.put([ShmMessageDesc(2**31, 0, 0, 0, 0)])
    queue.close()
    assert queue.get() is None
    assert queue.put([ShmMessageDesc(1, 0, 0, 0, 0)]) is None


def _send_back(tasks: ShmQueue, results: ShmQueue) -> None:
    while (messages := tasks.get()) is not None:
        results.put(messages)


def test_queues_between_processes() -> None:
    context: BaseContext = multiprocessing.get_context("fork")
    tasks, results = ShmQueue(context, 4), ShmQueue(context, 4)
    process = multiprocessing.get_context("fork").Process(target=_send_back, args=(tasks, results))
    process.start()
    for number in range(9):
        tasks.put([ShmMessageDesc(number, 0, 0, 0, 0)])
        assert [message.worker_id for message in results.get() or ()] == [number]
    tasks.close()
    process.join(20)
    assert process.exitcode == 0


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_call_several_callbacks(start_method: str) -> None:
    groups = [group(place_of), group(Counting(), batch=True), group(failing)]
    pool = WorkerPool.from_groups(groups, 1, start_method=start_method, num_workers=2)
    try:
        assert len(pool.pids()) == 2
        for number in range(3):
            pool.schedule_batch(0, TaskArgs.make_sample(SampleRange(number * 5, number * 5 + 5, number, 0)))
            pool.schedule_batch(1, TaskArgs.make_batch((number,)))
        pool.schedule_batch(2, TaskArgs.make_sample(SampleRange(0, 1, 0, 0)))
        assert pool.contexts[0].dedicated_worker_id is None
        assert pool.contexts[1].dedicated_worker_id == 0
        # The batches of different callbacks can be received in any order.
        assert [len(pool.receive_batch(1)) for _ in range(3)] == [1, 2, 3]
        for number in range(2):
            expected = [[number * 5 + index, index, number] for index in range(5)]
            np.testing.assert_array_equal(pool.receive_batch(0), expected)
        with pytest.raises(Exception, match="no such sample"):
            pool.receive_batch(2)
        pool.reset()
        assert not pool.contexts[0].scheduled_minibatches
        pool.schedule_batch(0, TaskArgs.make_sample(SampleRange(7, 8, 0, 1)))
        np.testing.assert_array_equal(pool.receive_batch(0), [[7, 0, 0]])
    finally:
        pool.close()
