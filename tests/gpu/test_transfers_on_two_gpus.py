"""Copies to two GPUs, alternately and at the same time."""

from __future__ import annotations

import threading

import cupy
import numpy as np

from penstock.tensors import TensorListCPU, TensorListGPU
from penstock.tensors.pinned import PinnedPool

MB = 1 << 20


def check(device: int, rounds: int, pool: PinnedPool) -> None:
    rng = np.random.default_rng(device)
    with cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True):
        for number in range(rounds):
            size = int(rng.integers(1, 8 * MB))
            source = pool.take(size) if number % 2 else np.empty(size, np.uint8)
            source[:] = rng.integers(0, 256, size, np.uint8)
            expected = source.copy()
            uploaded = TensorListGPU.upload(TensorListCPU(source[None]))
            del source
            assert uploaded.device_id() == device
            np.testing.assert_array_equal(uploaded.as_cpu()[0], expected)


def test_by_turns() -> None:
    # Both GPUs use memory that was pinned for one of them.
    pool = PinnedPool(0)
    for number in range(20):
        check(number % 2, 2, pool)


def test_at_the_same_time() -> None:
    errors: list[BaseException] = []

    def work(device: int) -> None:
        try:
            check(device, 60, PinnedPool(device))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_results_of_a_device_that_is_not_the_current_one() -> None:
    with cupy.cuda.Device(1):
        array = cupy.arange(3 * MB)
    with cupy.cuda.Device(0):
        batch = TensorListGPU(array[None])
        np.testing.assert_array_equal(batch.as_cpu()[0], np.arange(3 * MB))
