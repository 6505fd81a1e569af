"""Copies to a real GPU and back: memory is neither overwritten while it is read, nor read before it is written."""

from __future__ import annotations

import threading
from typing import Any

import cupy
import numpy as np
import pytest
import tested_gpu

from penstock import fn, pipeline_def
from penstock.tensors import TensorListCPU, TensorListGPU, transfers
from penstock.tensors.pinned import PinnedPool, copies_in_flight, pinned_bytes

MB = 1 << 20
ROUNDS = 60


def keep_busy() -> None:
    """Queue work of a few milliseconds on the current stream."""
    busy = cupy.ones((4096, 4096), cupy.float32)
    for _ in range(10):
        busy = busy @ busy


def filled(value: int, size: int) -> np.ndarray:
    """Return bytes that depend on their position and on ``value``."""
    return (np.arange(size, dtype=np.uint32) * 7 + value).astype(np.uint8)


def is_filled(array: Any, value: int) -> Any:
    """Return, as an array on the GPU, whether all bytes are as :func:`filled` made them."""
    places = cupy.arange(array.size, dtype=cupy.uint32)
    return (array == (places * 7 + value).astype(cupy.uint8)).all()


@pytest.mark.parametrize("size", [100_000, 700_000, 3 * MB, 40 * MB])
def test_memory_of_a_batch_is_not_the_next_ones_before_it_is_read(size: int) -> None:
    with cupy.cuda.Device(tested_gpu.device()), cupy.cuda.Stream(non_blocking=True):
        right = []
        for value in range(ROUNDS):
            uploaded = TensorListGPU.upload(TensorListCPU(filled(value, size)[None]))
            if value % 3 == 0:
                keep_busy()
            right.append(is_filled(uploaded.contiguous_elements(), value))
            # The memory is released before the GPU has begun to compare.
            del uploaded
        assert all(bool(one) for one in right)


@pytest.mark.parametrize("size", [100_000, 3 * MB, 40 * MB])
def test_page_locked_blocks_are_not_filled_again_while_they_are_copied(size: int) -> None:
    pool = PinnedPool(tested_gpu.device())
    with cupy.cuda.Device(tested_gpu.device()), cupy.cuda.Stream(non_blocking=True):
        right = []
        for value in range(ROUNDS):
            block = pool.take(size)
            block[:] = filled(value, size)
            if value % 5 == 0:
                keep_busy()
            uploaded = TensorListGPU.upload(TensorListCPU(block[None]))
            del block
            right.append(is_filled(uploaded.contiguous_elements(), value))
            del uploaded
        assert all(bool(one) for one in right)
    copies_in_flight.wait()
    pool.release()
    assert pool.reserved == 0


def test_threads_with_streams_of_their_own() -> None:
    errors: list[BaseException] = []

    def work(first: int) -> None:
        try:
            rng = np.random.default_rng(first)
            pool = PinnedPool(tested_gpu.device())
            with cupy.cuda.Device(tested_gpu.device()), cupy.cuda.Stream(non_blocking=True):
                for value in range(first, first + ROUNDS):
                    size = int(rng.integers(1, 6 * MB))
                    source = pool.take(size) if value % 2 else np.empty(size, np.uint8)
                    source[:] = filled(value, size)
                    uploaded = TensorListGPU.upload(TensorListCPU(source[None]))
                    del source
                    if value % 7 == 0:
                        keep_busy()
                    assert bool(is_filled(uploaded.contiguous_elements(), value))
                    back = uploaded.as_cpu()
                    np.testing.assert_array_equal(back[0], filled(value, size))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_results_come_after_the_work_before() -> None:
    with cupy.cuda.Device(tested_gpu.device()), cupy.cuda.Stream(non_blocking=True):
        for value in range(20):
            keep_busy()
            array = (cupy.arange(5 * MB, dtype=cupy.uint32) * 7 + value).astype(cupy.uint8)
            np.testing.assert_array_equal(transfers.array_to_host(array), filled(value, 5 * MB))


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_batches_of_a_pipeline_are_not_mixed_up(no_copy: bool, depth: int) -> None:
    """Each sample encodes the number of its batch, and so do the results computed from it."""
    batches = [np.full((8, 300, 400, 3), number, np.uint8) for number in range(40)]

    @pipeline_def(batch_size=8, num_threads=4, device_id=tested_gpu.device(), prefetch_queue_depth=depth)
    def pipeline() -> Any:
        images = fn.external_source(batches, layout="HWC", no_copy=no_copy, cycle=True)
        return images.gpu(), fn.flip(images.gpu()), fn.flip(images).gpu()

    running: Any = pipeline()
    for step in range(120):
        for output in running.run():
            assert int(output.contiguous_elements().min()) == int(output.contiguous_elements().max()) == step % 40
    running.close()


def test_nothing_grows() -> None:
    before = pinned_bytes()
    for _ in range(5):

        @pipeline_def(batch_size=8, num_threads=4, device_id=tested_gpu.device())
        def pipeline() -> Any:
            rng = np.random.default_rng(0)

            def source() -> list[np.ndarray]:
                return [np.zeros((int(rng.integers(300, 1200)), 400, 3), np.uint8) for _ in range(8)]

            return fn.flip(fn.external_source(source, layout="HWC").gpu())

        running: Any = pipeline()
        held = 0
        for step in range(60):
            running.run()
            if step == 20:
                held = pinned_bytes()
        assert pinned_bytes() <= 2 * held
        running.close()
        del running
    assert pinned_bytes() <= before + 64 * MB
