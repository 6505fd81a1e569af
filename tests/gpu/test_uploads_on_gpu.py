"""Descriptors that are queued on a stream are not overwritten by later launches."""

from __future__ import annotations

import threading

import cupy
import numpy as np
import tested_gpu

from penstock.kernels.cuda.window import WindowCopy, copy_windows

RNG = np.random.default_rng(0)
SOURCE = RNG.integers(0, 256, (64, 64, 3), np.uint8)


def launched_after_other_work(rounds: int) -> list[tuple[tuple[int, int, int], cupy.ndarray]]:
    """Launch crops at different positions while the stream is still busy; return the positions and the results."""
    source = cupy.asarray(SOURCE)
    busy = cupy.ones((4096, 4096), cupy.float32)
    for _ in range(20):
        busy = busy @ busy
    crops = []
    for number in range(rounds):
        anchor = (number % 40, number * 7 % 40, 0)
        target = cupy.empty((16, 20, 3), cupy.uint8)
        copy_windows([WindowCopy(source, target, anchor=anchor)])
        crops.append((anchor, target))
    return crops


def check(crops: list[tuple[tuple[int, int, int], cupy.ndarray]]) -> None:
    for (y, x, _), target in crops:
        np.testing.assert_array_equal(target.get(), SOURCE[y : y + 16, x : x + 20])


def test_one_stream() -> None:
    with cupy.cuda.Device(tested_gpu.device()), cupy.cuda.Stream(non_blocking=True):
        check(launched_after_other_work(300))


def test_threads_with_streams_of_their_own() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with cupy.cuda.Device(tested_gpu.device()), cupy.cuda.Stream(non_blocking=True):
                check(launched_after_other_work(200))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
