"""Work that continues without Python: a thread that runs compiled functions in order and never takes the GIL.

Codecs and devices use it so that the next batch is decoded while Python is busy, however long that takes.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np

# A job consists of a function's address, its argument, and the semaphore to post when it is done.
_MAX_JOBS, _WORDS = 64, 3
# At least the size of the C library's type on any platform.
_SEMAPHORE_BYTES = 64


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def _address_of(name: str) -> int:
    return ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0


class Semaphore:
    """A semaphore of the C library, usable from compiled functions; waiting for it releases the GIL.

    Args:
        count: initial value.
    """

    def __init__(self, count: int = 0) -> None:
        self._memory = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
        _library().sem_init(self._memory, 0, count)

    @property
    def address(self) -> int:
        """Its address."""
        return ctypes.addressof(self._memory)

    def wait(self) -> None:
        """Waits until the count is positive, and decrements it."""
        while _library().sem_wait(self._memory):
            pass  # Interrupted by a signal.

    def try_wait(self) -> bool:
        """Decrements the count if it is positive; returns whether it did."""
        return not _library().sem_trywait(self._memory)

    def post(self) -> None:
        """Increments the count."""
        _library().sem_post(self._memory)


class Job:
    """A call of a compiled function on a :class:`BackgroundThread`.

    Args:
        function: address of a C function that takes an address.
        argument: that address.
        keep: object to keep alive until the function is done.
    """

    def __init__(self, function: int, argument: int, keep: object = None) -> None:
        self.function, self.argument = function, argument
        self._keep = keep
        self._done = Semaphore()
        self._is_done = False

    @property
    def done_address(self) -> int:
        """Address of the semaphore that is posted when the job is done."""
        return self._done.address

    @property
    def is_done(self) -> bool:
        """Whether it is done."""
        if not self._is_done and self._done.try_wait():
            self._end()
        return self._is_done

    def wait(self) -> None:
        """Waits until the job is done, without holding the GIL."""
        if not self._is_done:
            self._done.wait()
            self._end()

    def _end(self) -> None:
        self._is_done = True
        # A finished job need not keep its data alive.
        self._keep = None


class BackgroundThread:
    """A thread that runs jobs in order without ever taking the GIL.

    Args:
        name: of the thread.
        prepare: called on the thread before the first job.
    """

    def __init__(self, name: str, prepare: Callable[[], None] | None = None) -> None:
        self._jobs = np.zeros((_MAX_JOBS, _WORDS), np.int64)
        self._turn = 0
        self._adding = threading.Lock()
        self._waiting, self._room = Semaphore(), Semaphore(_MAX_JOBS)
        # Running jobs are kept alive here, as their owners may drop them early.
        self._running: deque[Job] = deque()
        ring = self._jobs, self._waiting, self._room
        self._thread = threading.Thread(target=_serve, args=(*ring, prepare), name=name, daemon=True)
        self._thread.start()
        _threads.add(self)

    def submit(self, job: Job) -> None:
        """Queues a job; blocks while the queue is full."""
        with self._adding:
            while self._running and self._running[0].is_done:
                self._running.popleft()
            self._running.append(job)
            self._add(job.function, job.argument, job.done_address)

    def _add(self, function: int, argument: int, done: int) -> None:
        self._room.wait()
        self._jobs[self._turn] = function, argument, done
        self._turn = (self._turn + 1) % _MAX_JOBS
        self._waiting.post()

    def close(self) -> None:
        """Finishes the queued jobs, and ends the thread."""
        with self._adding:
            if self._thread.is_alive():
                self._add(0, 0, 0)
                self._thread.join()
            self._running.clear()


def _serve(jobs: np.ndarray, waiting: Semaphore, room: Semaphore, prepare: Callable[[], None] | None) -> None:
    from penstock.kernels.cpu.service import serve

    if prepare is not None:
        prepare()
    serve(jobs, waiting.address, room.address, _address_of("sem_wait"), _address_of("sem_post"))


_threads: weakref.WeakSet[BackgroundThread] = weakref.WeakSet()


@atexit.register
def _close_threads() -> None:
    """Ends the threads: one inside a C++ library at exit would abort the process."""
    for thread in list(_threads):
        with contextlib.suppress(RuntimeError):
            thread.close()
