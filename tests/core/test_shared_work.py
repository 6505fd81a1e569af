"""Work whose shares threads take without the GIL, and calls that are made when all shares are done."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from native_words import counted_at, set_word, word_at

from penstock.core.threads import CALL_WORDS, NO_CALLS, BackgroundThreads, SharedWork
from penstock.kernels.cpu.memory import call
from penstock.kernels.cpu.options import cfunc

# Threads sleep while they wait, so that they do not occupy a processor if a failed test never ends their wait.
_SLEEP = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value


@cfunc("int64, int64", "int32")
def note(numbers: Any, place: Any) -> Any:
    """Increment the number at index ``place``."""
    counted_at(numbers + 8 * place)
    return 0


@cfunc("int64, int64", "int32")
def hold(numbers: Any, place: Any) -> Any:
    """Wait until the test writes to number 8, counting in number 9 meanwhile; then increment the number at index ``place``."""
    while word_at(numbers + 8 * 8) == 0:
        counted_at(numbers + 8 * 9)
        call(_SLEEP, (1000,))
    counted_at(numbers + 8 * place)
    return 0


@cfunc("int64, int64, int64", "int32")
def add_up(numbers: Any, count: Any, result: Any) -> Any:
    """Write the sum of numbers to ``result``, and return it, too."""
    total = 0
    for place in range(count):
        total += word_at(numbers + 8 * place)
    set_word(result, total)
    return total


@pytest.fixture(params=[0, 1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[BackgroundThreads | None]:
    crew = BackgroundThreads("penstock-test", request.param) if request.param else None
    yield crew
    if crew is not None:
        crew.close()


def calls(*rows: tuple[int, ...]) -> np.ndarray:
    made = np.zeros((len(rows), CALL_WORDS), np.int64)
    for row, own in zip(made, rows, strict=True):
        row[: len(own)] = own
    return made


def test_shares_are_done_once_and_before_the_calls(threads: BackgroundThreads | None) -> None:
    for round_ in range(200):
        count = round_ % 40 + 1
        numbers, result = np.zeros(count, np.int64), np.zeros(1, np.int64)
        work = SharedWork(note.address, numbers.ctypes.data, count, numbers, threads)
        # The call returns a sum that is not 0, so it counts as failed, and `wait` returns the sum.
        work.follow(calls((add_up.address, numbers.ctypes.data, count, result.ctypes.data)), result)
        assert work.wait() == count
        assert result[0] == count
        assert (numbers == 1).all()
        assert work.is_done


def test_calls_end_with_the_first_that_fails(threads: BackgroundThreads | None) -> None:
    numbers, results = np.zeros(2, np.int64), np.zeros(3, np.int64)
    places = [results[k:].ctypes.data for k in range(3)]
    work = SharedWork(note.address, numbers.ctypes.data, 2, numbers, threads)
    begin = numbers.ctypes.data
    work.follow(calls(*((add_up.address, begin, count, place) for count, place in zip((0, 2, 1), places, strict=True))))
    assert work.wait() == 2
    assert results.tolist() == [0, 2, 0]


def test_work_goes_on_while_python_computes_and_needs_no_calls_yet() -> None:
    crew = BackgroundThreads("penstock-test", 2)
    numbers = np.zeros(10, np.int64)
    work = SharedWork(hold.address, numbers.ctypes.data, 2, numbers, crew)
    deadline = time.monotonic() + 20
    while not numbers[9] and time.monotonic() < deadline:
        pass
    assert numbers[9]
    work.follow(calls())
    assert not work.is_done
    threading.Timer(0.05, lambda: numbers.__setitem__(8, 1)).start()
    assert work.wait() == 0
    assert numbers[:2].tolist() == [1, 1]
    crew.close()


def test_several_may_wait() -> None:
    crew = BackgroundThreads("penstock-test", 2)
    numbers = np.zeros(10, np.int64)
    work = SharedWork(hold.address, numbers.ctypes.data, 3, numbers, crew)
    work.follow(calls())
    waiting = [threading.Thread(target=work.wait) for _ in range(4)]
    for thread in waiting:
        thread.start()
    numbers[8] = 1
    for thread in waiting:
        thread.join(20)
    assert not any(thread.is_alive() for thread in waiting)
    crew.close()


class Kept:
    """An object to keep alive."""


def test_what_work_needs_is_kept_as_long_as_it_is_needed() -> None:
    crew = BackgroundThreads("penstock-test", 2)
    numbers, kept = np.zeros(10, np.int64), Kept()
    alive = weakref.ref(kept)
    work = SharedWork(hold.address, numbers.ctypes.data, 2, (numbers, kept), crew)
    work.follow(calls(), kept)
    del kept
    assert alive() is not None
    numbers[8] = 1
    work.wait()
    assert alive() is None
    numbers[8], kept = 0, Kept()
    alive = weakref.ref(kept)
    work = SharedWork(hold.address, numbers.ctypes.data, 2, (numbers, kept), crew)
    work.follow(calls())
    # Nobody waits for this work.
    del work, kept
    assert alive() is not None
    numbers[8] = 1
    crew.close()
    assert alive() is None


def test_nothing_need_follow(threads: BackgroundThreads | None) -> None:
    numbers = np.zeros(30, np.int64)
    for _ in range(100):
        work = SharedWork(note.address, numbers.ctypes.data, 30, numbers, threads)
        work.follow(NO_CALLS)
        work.help()
        assert work.wait() == 0
    assert (numbers == 100).all()


PROGRAM = """
import gc, os, signal, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from test_shared_work import calls, hold
from penstock.core.threads import BackgroundThreads, SharedWork

crew, numbers = BackgroundThreads("penstock-test", 2), np.zeros(10, np.int64)
work = SharedWork(hold.address, numbers.ctypes.data, 2, numbers, crew)
work.follow(calls())
child = os.fork()
if child == 0:
    signal.alarm(20)
    work.wait()
    crew.close()
    sys.exit(7)
numbers[8] = 1
work.wait()
_, status = os.waitpid(child, 0)
print("parent", os.waitstatus_to_exitcode(status))
# What is on its way at the end is done before the process ends.
numbers[8] = 0
work = SharedWork(hold.address, numbers.ctypes.data, 2, numbers, crew)
work.follow(calls())
del work
numbers[8] = 1
"""


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, __file__.rpartition("/")[0]],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["parent", "7"], done.stderr
