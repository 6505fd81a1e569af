"""Work that continues without Python: threads that run compiled functions and never take the GIL.

Codecs and devices use them so that the next batch is decoded while Python is busy, however long that takes.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import threading
import time
import weakref
from collections import deque

import numpy as np

_MAX_JOBS = 64
# How long to sleep while the queue is full.
_SECONDS = 1e-4
# At least the size of the C library's type on any platform.
_SemaphoreMemory = ctypes.c_char * 64
# What returns at once keeps the GIL: another thread could take it, and keep it for long.
_waiting, _prompt = ctypes.CDLL(None), ctypes.PyDLL(None)


@functools.cache
def address_of(name: str) -> int:
    """The address of a function of the C library."""
    return ctypes.cast(getattr(_waiting, name), ctypes.c_void_p).value or 0


class Semaphore:
    """A semaphore of the C library, usable from compiled functions; waiting for it releases the GIL.

    Args:
        count: initial value.

    Attributes:
        address: where it lies.
    """

    __slots__ = ("_memory", "address")

    def __init__(self, count: int = 0) -> None:
        self._memory = _SemaphoreMemory()
        self.address = ctypes.addressof(self._memory)
        _prompt.sem_init(self._memory, 0, count)

    def wait(self) -> None:
        """Waits until the count is positive, and decrements it."""
        memory = self._memory
        while _prompt.sem_trywait(memory) and _waiting.sem_wait(memory):
            pass  # Interrupted by a signal.

    def try_wait(self) -> bool:
        """Decrements the count if it is positive; returns whether it did."""
        return not _prompt.sem_trywait(self._memory)

    def post(self) -> None:
        """Increments the count."""
        _prompt.sem_post(self._memory)


class Task:
    """Calls of a compiled function on :class:`BackgroundThreads`. Python waits only for a :class:`Job`.

    Args:
        function: address of a C function that takes an address.
        argument: that address.
        keep: object to keep alive until the function is done.
        times: how many threads are to call it.

    Attributes:
        told: the address of a semaphore that is posted after each call, or 0.
    """

    __slots__ = ("_keep", "argument", "function", "times", "told")

    def __init__(self, function: int, argument: int, keep: object = None, times: int = 1) -> None:
        self.function, self.argument, self.times, self.told = function, argument, times, 0
        self._keep = keep


class Job(Task):
    """A task for which Python may wait."""

    __slots__ = ("_counting", "_done", "_left")

    def __init__(self, function: int, argument: int, keep: object = None, times: int = 1) -> None:
        # Not by `Task`: there is one for each small batch.
        done = self._done = Semaphore()
        self.function, self.argument, self.times, self.told = function, argument, times, done.address
        self._keep = keep
        self._left, self._counting = times, threading.Lock()

    @property
    def is_done(self) -> bool:
        """Whether it is done."""
        while self._left and self._done.try_wait():
            self._end_one()
        return not self._left

    def wait(self) -> None:
        """Waits until the job is done, without holding the GIL."""
        while self._left:
            self._done.wait()
            self._end_one()

    def _end_one(self) -> None:
        with self._counting:
            self._left = max(self._left - 1, 0)
        if not self._left:
            # Another thread may wait, too, and this one have had what it waits for.
            self._done.post()
            # A finished job need not keep its data alive.
            self._keep = None


class BackgroundThreads:
    """Threads that run jobs without ever taking the GIL; a single one runs them in order.

    Args:
        name: of the threads.
        count: how many.
    """

    def __init__(self, name: str, count: int = 1) -> None:
        from penstock.kernels.cpu.service import ENDED, JOB_WORDS, add_job

        # A place more than there are jobs, for the one that ends the threads.
        jobs = np.zeros((_MAX_JOBS + 1, JOB_WORDS), np.int64)
        self._places, self._ended, self._turn = [job.ctypes.data for job in jobs], jobs[:, ENDED], 0
        self._add_job, self._post = add_job, address_of("sem_post")
        self._adding = threading.Lock()
        self._waiting, turning = Semaphore(), Semaphore(1)
        # What is not done is kept alive here, as its owners may drop it early; and its places.
        self._running: deque[tuple[int, Task]] = deque()
        ring = jobs, np.zeros(1, np.int64), self._waiting, turning
        self._threads = [threading.Thread(target=_serve, args=ring, name=name, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        _threads.add(self)

    def __len__(self) -> int:
        return len(self._threads)

    def submit(self, task: Task) -> None:
        """Queues a task; blocks while the queue is full."""
        running, ended = self._running, self._ended
        with self._adding:
            while running:
                place, oldest = running[0]
                if ended.item(place) == oldest.times:
                    running.popleft()
                elif len(running) == _MAX_JOBS:
                    # It has to be done, and not only begun, for its place to be free.
                    time.sleep(_SECONDS)
                else:
                    break
            self._add(task)

    def _add(self, task: Task) -> None:
        turn, places = self._turn, self._places
        self._running.append((turn, task))
        self._turn = (turn + 1) % len(places)
        self._add_job(
            places[turn], task.function, task.argument, task.told, task.times, self._waiting.address, self._post
        )

    def close(self) -> None:
        """Finishes the queued jobs, and ends the threads."""
        with self._adding:
            if any(thread.is_alive() for thread in self._threads):
                self._add(Task(0, 0, times=len(self._threads)))
                for thread in self._threads:
                    thread.join()
            self._running.clear()


def _serve(jobs: np.ndarray, turn: np.ndarray, waiting: Semaphore, turning: Semaphore) -> None:
    from penstock.kernels.cpu.service import serve

    serve(jobs, turn, waiting.address, turning.address, address_of("sem_wait"), address_of("sem_post"))


_threads: weakref.WeakSet[BackgroundThreads] = weakref.WeakSet()


@atexit.register
def _close_threads() -> None:
    """Ends the threads: one inside a C++ library at exit would abort the process."""
    for thread in list(_threads):
        with contextlib.suppress(RuntimeError):
            thread.close()
