"""Copies between the host and a GPU: with and without staging memory, when memory becomes free, and when it cannot be allocated."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.tensors import TensorListCPU, TensorListGPU, pinned, transfers
from penstock.tensors.cuda import require_cupy
from penstock.tensors.pinned import (
    PinnedMemoryError,
    PinnedPool,
    copies_in_flight,
    is_pinned,
    pinned_block,
    pinned_bytes,
)
from penstock.tensors.transfers import Threads, array_to_host

MB = 1 << 20
RNG = np.random.default_rng(0)

# A real GPU or, if there is none, an emulated one, which makes copies at once.
pytestmark = pytest.mark.usefixtures("with_gpu")


@pytest.fixture(autouse=True)
def _alone(with_gpu: None) -> None:
    """Release the memory that earlier tests retained."""
    gc.collect()
    copies_in_flight.wait()
    transfers.release_unused(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, np.uint8)


def staged() -> int:
    """Return the slot of staging memory that the next copy takes; -1 if there is no staging memory."""
    staging = transfers.transfers()._staging
    return -1 if staging is None else staging._next


def check(batch: TensorListCPU, threads: Threads | None = None) -> TensorListGPU:
    """Upload a batch, and compare the copy with the batch on the host."""
    expected = [np.array(sample) for sample in batch.samples]
    uploaded = TensorListGPU.upload(batch, threads)
    assert uploaded.shape() == [sample.shape for sample in expected]
    assert uploaded.dtype == batch.dtype
    back = uploaded.as_cpu()
    assert len(back) == len(expected)
    for sample, own in zip(back.samples, expected):
        np.testing.assert_array_equal(sample, own)
    return uploaded


# -- to the GPU and back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 1000, 1 << 16, (1 << 16) + 1, MB - 1, MB, 5 * MB + 3, 70 * MB])
def test_a_contiguous_batch(size: int) -> None:
    check(TensorListCPU(numbers(1, size)))


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_samples_that_lie_here_and_there(dtype: type, threads: int) -> None:
    shapes = [(3, 5), (0, 7), (700, 1000), (1, 1), (512, 1024), (2, 0), (333, 7)]
    samples = [RNG.integers(0, 100, shape).astype(dtype) for shape in shapes]
    check(TensorListCPU.of_samples(samples), Threads(threads))


def test_samples_that_are_not_contiguous() -> None:
    whole = numbers(700, 900, 3)
    check(TensorListCPU.of_samples([whole[::2], whole[:, 100:300], whole[5:]]))


def test_flat_samples_and_parts_of_a_block() -> None:
    block = numbers(3 * MB)
    sizes = [100, MB, 70_000, 0, 500_000]
    starts = np.array([10, 1000, MB + 5000, 77, 2 * MB])
    batch = TensorListCPU.of_parts(block, starts, [(size,) for size in sizes], TensorListCPU(block[None]).dtype, 1)
    uploaded = TensorListGPU.upload(batch)
    assert batch.parts is not None, "they are needed as arrays"
    for sample, start, size in zip(uploaded.as_cpu().samples, starts, sizes):
        np.testing.assert_array_equal(sample, block[start : start + size])
    arrays = [block[start : start + size].copy() for start, size in zip(starts, sizes)]
    places, lengths = np.array([array.ctypes.data for array in arrays]), np.array(sizes)
    check(TensorListCPU.of_flat(arrays, places, lengths, batch.dtype))


def test_empty_batches_and_samples() -> None:
    assert not len(TensorListGPU.upload(TensorListCPU([])))
    check(TensorListCPU.of_samples([np.zeros((0, 3), np.float32), np.zeros((2, 0), np.float32)]))


def test_sources_are_as_before() -> None:
    samples = [numbers(300, 400) for _ in range(3)]
    batch = TensorListCPU.of_samples(samples)
    TensorListGPU.upload(batch)
    assert batch.elements is None
    assert all(own is sample for own, sample in zip(batch.samples, samples))


def test_a_source_may_change_when_the_upload_returns() -> None:
    source = numbers(40 * MB)
    expected = source.copy()
    uploaded = TensorListGPU.upload(TensorListCPU(source[None]))
    source[:] = 0
    np.testing.assert_array_equal(uploaded.as_cpu()[0], expected)


def test_threads_share_staging_memory() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            with require_cupy().cuda.Device(0), require_cupy().cuda.Stream(non_blocking=True):
                for _ in range(20):
                    check(
                        TensorListCPU.of_samples(
                            [rng.integers(0, 256, rng.integers(1, 3 * MB), np.uint8) for _ in range(3)]
                        )
                    )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_strided_array_comes_back() -> None:
    cupy = require_cupy()
    whole = numbers(600, 700)
    np.testing.assert_array_equal(array_to_host(cupy.asarray(whole)[::2, 1:]), whole[::2, 1:])


# -- pinned memory ------------------------------------------------------------------------------------------------


def test_page_locked_memory_is_used_as_it_is() -> None:
    pool = PinnedPool()
    source = pool.take(5 * MB)
    source[:] = numbers(5 * MB)
    before = staged()
    check(TensorListCPU(source[None]))
    check(TensorListCPU.of_samples([source[: 2 * MB], source[3 * MB :]]))
    assert staged() == before


def test_small_samples_are_gathered() -> None:
    source = PinnedPool().take(MB)
    source[:] = numbers(MB)
    before = staged()
    check(TensorListCPU.of_samples([source[start : start + 5000] for start in range(0, MB, 10_000)]))
    assert staged() > before


def test_a_block_is_free_after_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(require_cupy().cuda.runtime, "host"):
        pytest.skip("on a real GPU, copies are done when they are done")

    class Event:
        ptr = 0

        def __init__(self, **_: Any) -> None:
            self.done = False

        def synchronize(self) -> None:
            self.done = True

    monkeypatch.setattr(sys.modules["cupy"].cuda, "Event", Event)
    pool = PinnedPool()
    block = pool.take(2 * MB)
    place = block.ctypes.data
    uploaded = TensorListGPU.upload(TensorListCPU(block[None]))
    del block
    assert pool.take(2 * MB).ctypes.data != place, "the copy is under way"
    copies_in_flight.wait()
    assert place in {pool.take(2 * MB).ctypes.data for _ in range(2)}, "the copy is done"
    del uploaded


def test_memory_is_counted_and_given_back() -> None:
    before = pinned_bytes()
    pool = PinnedPool()
    held = [pool.take(MB) for _ in range(3)]
    assert pinned_bytes() - before == pool.reserved == 3 * MB
    del held
    assert pinned_bytes() - before == 3 * MB
    pool.release()
    assert pinned_bytes() == before
    TensorListGPU.upload(TensorListCPU(numbers(1, 2 * MB))).as_cpu()
    assert pinned_bytes() > before
    transfers.release_unused(0)
    assert pinned_bytes() == before


def test_memory_that_is_being_taken_is_not_waited_for() -> None:
    """Garbage collection while this thread holds the lock may close a pipeline, which must not wait for the lock."""
    check(TensorListCPU(numbers(1, 2 * MB)))
    device, pool = transfers.transfers(), PinnedPool()
    pool.take(MB)
    with device._staging_lock, pool._lock, transfers._results()._lock:
        transfers.release_unused(0)
        pool.release()
    assert device._staging is not None
    assert pool.reserved == MB


def test_memory_is_what_was_in_use_at_once() -> None:
    pool = PinnedPool()
    for size in np.random.default_rng(0).integers(MB, 4 * MB, 200).tolist():
        TensorListGPU.upload(TensorListCPU(pool.take(size)[None]))
        copies_in_flight.wait()
    assert pool.reserved <= 5 * MB


def test_a_limit_leads_to_ordinary_memory() -> None:
    pool = PinnedPool(max_bytes=2 * MB)
    blocks = [pool.take(MB) for _ in range(4)]
    assert [is_pinned(block.ctypes.data) for block in blocks] == [True, True, False, False]
    assert pool.reserved == 4 * MB
    for block in blocks:
        block[:] = numbers(MB)
    check(TensorListCPU.of_samples(blocks))


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = require_cupy().cuda.runtime

    def refuse(_size: int, _flags: int) -> int:
        raise runtime.CUDARuntimeError(2)

    monkeypatch.setattr(runtime, "hostAlloc", refuse)
    monkeypatch.setattr(pinned, "_refused", False)


@pytest.mark.usefixtures("refusing")
def test_a_refusal_is_told_once_and_changes_no_result() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check(TensorListCPU.of_samples([numbers(800, 900) for _ in range(3)]))
        check(TensorListCPU(PinnedPool().take(3 * MB)[None]))
    (warning,) = told
    assert warning.category is RuntimeWarning
    assert re.match("The system refuses .* bytes of page-locked memory", str(warning.message))
    with pytest.raises(PinnedMemoryError):
        pinned_block(MB)


def test_forked_processes_take_ordinary_memory() -> None:
    pool = PinnedPool()
    pool.take(MB)
    with warnings.catch_warnings():
        # Python warns about forking while there are threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            block = pool.take(MB)
            block[:] = 1
            pool.release()
            del pool
            gc.collect()
            os._exit(int(pinned_bytes() != 0))
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


# -- in pipelines ------------------------------------------------------------------------------------------------------


def test_what_goes_to_the_gpu_is_made_in_page_locked_memory() -> None:
    images = [numbers(400, 300, 3) for _ in range(4)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipeline() -> Any:
        fed = fn.external_source(lambda: images, layout="HWC")
        return fn.flip(fed.gpu()), fn.flip(fed).gpu(), fn.crop(fed, crop=(100, 100))

    running: Any = pipeline()
    running.build()
    before = staged()
    for _ in range(5):
        fed, flipped, cropped = running.run()
        for image, one, other, part in zip(images, fed.as_cpu(), flipped.as_cpu(), cropped):
            np.testing.assert_array_equal(np.array(one), image[:, ::-1])
            np.testing.assert_array_equal(np.array(other), image[:, ::-1])
            np.testing.assert_array_equal(np.array(part), image[150:250, 100:200])
    assert staged() == before, "something was copied twice"
    executor = running.executor
    assert executor.pinned_pool.reserved >= sum(image.nbytes for image in images)
    pool = executor.pinned_pool
    del fed, flipped, cropped, one, other, part, executor
    running.close()
    assert pool.reserved == 0


def test_memory_of_the_source_is_not_copied_on_the_host() -> None:
    pool = PinnedPool()
    memory = pool.take(6 * MB).reshape(2, 1024, 1024, 3)
    memory[:] = numbers(2, 1024, 1024, 3)

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipeline() -> Any:
        return fn.external_source(lambda: memory, no_copy=True, device="gpu", layout="HWC")

    running: Any = pipeline()
    running.build()
    (output,) = running.run()
    np.testing.assert_array_equal(output.as_cpu().as_array(), memory)
    assert running.executor.pinned_pool.reserved == 0
    running.close()


def test_large_copies_go_on_while_the_previous_batch_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads copy data from ordinary memory; the later steps of the batch wait for this copy, and for nothing else."""
    arrived: list[int] = []
    wait = transfers.Arrival.wait

    def noted(self: transfers.Arrival) -> None:
        arrived.append(len(fetched))
        wait(self)

    monkeypatch.setattr(transfers.Arrival, "wait", noted)
    batches = [[RNG.random(MB + 1000 * number + index, np.float32) for index in range(2)] for number in range(6)]
    fetched: list[int] = []

    def source() -> list[np.ndarray]:
        fetched.append(len(fetched))
        return batches[fetched[-1] % len(batches)]

    @pipeline_def(batch_size=2, num_threads=2, device_id=0, prefetch_queue_depth=2)
    def pipeline() -> Any:
        data = fn.external_source(source, no_copy=True)
        return data.gpu() * np.float32(2), data.gpu()

    running: Any = pipeline()
    running.build()
    for number in range(5):
        doubled, same = running.run()
        for index, expected in enumerate(batches[number]):
            np.testing.assert_array_equal(np.asarray(same.as_cpu().samples[index]), expected)
            np.testing.assert_array_equal(np.asarray(doubled.as_cpu().samples[index]), 2 * expected)
    # Whenever a batch arrived, the next one had already been fetched.
    assert len(arrived) >= 5
    assert all(seen > number + 1 for number, seen in enumerate(arrived[1:-1], 1))
    del running


def test_a_batch_that_nobody_waits_for_is_copied_before_its_memory_is_reused() -> None:
    for _ in range(3):
        batch = TensorListCPU([RNG.random(MB, np.float32) for _ in range(2)], contiguous=False)
        uploaded, arrival = TensorListGPU.begin_upload(batch)
        assert arrival is not None
        del uploaded, arrival, batch
    check(TensorListCPU([numbers(3 * MB), numbers(MB)], contiguous=False))
