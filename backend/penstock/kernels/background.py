"""Work that goes on without Python: a thread that runs compiled functions, one after the other, and never takes the GIL.

Codecs and devices are served so: the next batch is decoded while Python is busy with something else, however long.
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

# A job is a function's address, its argument, and the semaphore that tells that it is done.
_MAX_JOBS, _WORDS = 64, 3
# More than the C library's type takes on any platform.
_SEMAPHORE_BYTES = 64


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def _address_of(name: str) -> int:
    return ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0


class Semaphore:
    """One of the C library's, which compiled functions can use; to wait for it gives the GIL up.

    Args:
        count: that it begins with.
    """

    def __init__(self, count: int = 0) -> None:
        self._memory = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
        _library().sem_init(self._memory, 0, count)

    @property
    def address(self) -> int:
        """Where it is."""
        return ctypes.addressof(self._memory)

    def wait(self) -> None:
        """Waits until it is above zero, and takes one off."""
        while _library().sem_wait(self._memory):
            pass  # A signal came.

    def try_wait(self) -> bool:
        """Takes one off if it is above zero; tells whether it was."""
        return not _library().sem_trywait(self._memory)

    def post(self) -> None:
        """Adds one."""
        _library().sem_post(self._memory)


class Job:
    """A call of a compiled function on a :class:`BackgroundThread`.

    Args:
        function: the address of a C function that takes an address.
        argument: that address.
        keep: what must live until the function is done.
    """

    def __init__(self, function: int, argument: int, keep: object = None) -> None:
        self.function, self.argument = function, argument
        self._keep = keep
        self._done = Semaphore()
        self._is_done = False

    @property
    def done_address(self) -> int:
        """The semaphore that is raised when it is done."""
        return self._done.address

    @property
    def is_done(self) -> bool:
        """Whether it is done."""
        if not self._is_done and self._done.try_wait():
            self._end()
        return self._is_done

    def wait(self) -> None:
        """Waits until it is done, without the GIL."""
        if not self._is_done:
            self._done.wait()
            self._end()

    def _end(self) -> None:
        self._is_done = True
        # Who holds the job need not hold what it worked on.
        self._keep = None


class BackgroundThread:
    """A thread that runs jobs in order without ever taking the GIL.

    Args:
        name: of the thread.
        prepare: is called on the thread before the first job.
    """

    def __init__(self, name: str, prepare: Callable[[], None] | None = None) -> None:
        self._jobs = np.zeros((_MAX_JOBS, _WORDS), np.int64)
        self._turn = 0
        self._adding = threading.Lock()
        self._waiting, self._room = Semaphore(), Semaphore(_MAX_JOBS)
        # What runs is kept here: who asked for it may be gone before it is done.
        self._running: deque[Job] = deque()
        ring = self._jobs, self._waiting, self._room
        self._thread = threading.Thread(target=_serve, args=(*ring, prepare), name=name, daemon=True)
        self._thread.start()
        _threads.add(self)

    def submit(self, job: Job) -> None:
        """Has a job run after those before it; waits where there are too many."""
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
        """Ends the thread after its jobs, which are waited for."""
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
    """Lets the threads come to an end: one that is inside of a C++ library when the process ends aborts it."""
    for thread in list(_threads):
        with contextlib.suppress(RuntimeError):
            thread.close()
