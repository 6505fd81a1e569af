"""A thread that runs compiled functions without the GIL."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest
from native_words import set_int, set_word, word_at

from penstock.core.threads import BackgroundThreads, Job
from penstock.kernels.cpu.memory import call
from penstock.kernels.cpu.options import cfunc

# Threads sleep while they wait, so that they do not occupy a processor if a failed test never ends their wait.
_SLEEP = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value


@cfunc("int64", "int32")
def note(place: Any) -> Any:
    """Increment the counter to whose address the word at ``place`` refers, and store the new value in the next word."""
    counter = word_at(place)
    set_word(counter, word_at(counter) + 1)
    set_word(place + 8, word_at(counter))
    return 0


@cfunc("int64", "int32")
def spin(place: Any) -> Any:
    """Run until the test writes to the word at ``place``."""
    while word_at(place) == 0:
        set_int(place + 8, word_at(place + 8) + 1)
        call(_SLEEP, (1000,))
    return 0


@pytest.fixture
def thread() -> Any:
    thread = BackgroundThreads("penstock-test")
    yield thread
    thread.close()


def test_jobs_run_in_order_however_many(thread: BackgroundThreads) -> None:
    counter = np.zeros(1, np.int64)
    places = np.zeros((300, 2), np.int64)
    places[:, 0] = counter.ctypes.data
    jobs = [Job(note.address, place.ctypes.data, place) for place in places]
    for job in jobs:
        thread.submit(job)
    for job in reversed(jobs):
        job.wait()
        assert job.is_done
    assert places[:, 1].tolist() == list(range(1, 301))


def test_a_job_runs_while_python_computes_and_waiting_gives_the_gil_up(thread: BackgroundThreads) -> None:
    place = np.zeros(2, np.int64)
    job = Job(spin.address, place.ctypes.data, place)
    thread.submit(job)
    deadline = time.monotonic() + 20
    while not place[1] and time.monotonic() < deadline:
        pass
    assert place[1]
    assert not job.is_done

    def release() -> None:
        place[0] = 1

    threading.Timer(0.05, release).start()
    job.wait()
    assert job.is_done


def test_two_threads_may_wait_for_the_same_job(thread: BackgroundThreads) -> None:
    flag = np.zeros(2, np.int64)
    job = Job(spin.address, flag.ctypes.data, flag)
    thread.submit(job)
    waiting = [threading.Thread(target=job.wait, daemon=True) for _ in range(3)]
    for one in waiting:
        one.start()
    flag[0] = 1
    while not job.is_done:
        pass
    for one in waiting:
        one.join(10)
        assert not one.is_alive()


def test_what_a_job_needs_lives_as_long_as_the_job(thread: BackgroundThreads) -> None:
    blocker, place = np.zeros(2, np.int64), np.zeros(2, np.int64)
    thread.submit(Job(spin.address, blocker.ctypes.data, blocker))
    counter = np.zeros(1, np.int64)
    place[0] = counter.ctypes.data
    thread.submit(Job(note.address, place.ctypes.data, (place, counter)))
    kept = place.ctypes.data
    del place, counter
    blocker[0] = 1
    thread.close()
    assert kept


def test_closing_waits_for_the_jobs_and_can_be_done_twice() -> None:
    counter, place = np.zeros(1, np.int64), np.zeros(2, np.int64)
    place[0] = counter.ctypes.data
    thread = BackgroundThreads("penstock-test")
    for _ in range(20):
        thread.submit(Job(note.address, place.ctypes.data))
    thread.close()
    thread.close()
    assert counter[0] == 20
    with pytest.raises(RuntimeError, match="ended"):
        thread.submit(Job(note.address, place.ctypes.data))


def test_several_threads_may_call_a_function() -> None:
    threads, flags = BackgroundThreads("penstock-test", 3), np.zeros(2, np.int64)
    job = Job(spin.address, flags.ctypes.data, flags, times=3)
    threads.submit(job)
    assert not job.is_done
    flags[0] = 1
    job.wait()
    assert job.is_done
    threads.close()
