"""Work that continues without Python: threads that run compiled functions and never take the GIL.

Codecs and devices use these threads so that the next batch is decoded even while Python code keeps the GIL.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from typing import Protocol

import numpy as np

from penstock.core.loading import brief_core, core

CALL_WORDS = 12
"""The size of a ``PenstockCall`` in words: a function's address and eleven arguments, of which it may use fewer."""
NO_CALLS = np.zeros((0, CALL_WORDS), np.int64)
"""An empty list of calls, for :meth:`SharedWork.follow`."""
# Has one element for each fork between the first process and this one, so that a forked process is recognized without a system call.
_forks: list[None] = []
os.register_at_fork(after_in_child=lambda: _forks.append(None))


def make_calls(calls: int, count: int) -> int:
    """Call functions until one fails; return the result of the function that failed, or 0.

    Args:
        calls: the address of ``count`` rows of CALL_WORDS words; the functions return 0 unless they fail.
    """
    status: int = core().penstock_make_calls(calls, count)
    return status


class _Running(Protocol):
    """Submitted work that must be kept alive until it is done, because threads use its data."""

    @property
    def is_done(self) -> bool: ...


class BackgroundThreads:
    """Threads that run jobs, and do shares of work, without ever taking the GIL; if there is only one thread, it runs jobs in order.

    Args:
        name: the threads' name, which debuggers show: at most 15 characters.
        count: the number of threads.

    Raises:
        MemoryError: the system grants no thread.
    """

    def __init__(self, name: str, count: int = 1) -> None:
        self._count, self._forks = count, len(_forks)
        # Keeps unfinished work alive, even if its owners drop it.
        self._running: deque[_Running] = deque()
        self._keeping = threading.Lock()
        self._address: int | None = core().penstock_threads_start(name.encode(), count)
        if self._address is None:
            raise MemoryError("the system grants no thread for background work")
        _threads.add(self)

    def __len__(self) -> int:
        return self._count

    @property
    def address(self) -> int:
        """Return the address of the threads; raise RuntimeError if they have ended."""
        if self._address is None:
            raise RuntimeError("these threads have ended")
        return self._address

    def submit(self, job: Job) -> None:
        """Submit a job; each job can be submitted once."""
        job.begin(self.address)
        self.keep(job)

    def keep(self, running: _Running) -> None:
        """Keep submitted work alive until it is done."""
        with self._keeping:
            while self._running and self._running[0].is_done:
                self._running.popleft()
            self._running.append(running)

    def close(self) -> None:
        """Finish the submitted jobs, and end the threads."""
        address, self._address = self._address, None
        # In a forked process, the threads do not exist.
        if address is not None and self._forks == len(_forks):
            core().penstock_threads_close(address)
        with self._keeping:
            self._running.clear()


class Job:
    """A compiled function to call on background threads.

    Args:
        function: the address of a C function whose only argument is an address, and which returns ``int``.
        argument: that address.
        keep: an object to keep alive until the function is done.
        times: the number of threads that call the function.
    """

    __slots__ = ("_address", "_argument", "_forks", "_function", "_keep", "_release", "_times")

    def __init__(self, function: int, argument: int, keep: object = None, times: int = 1) -> None:
        self._function, self._argument, self._keep, self._times = function, argument, keep, times
        self._address: int | None = None
        self._forks, self._release = len(_forks), brief_core().penstock_task_release

    def __del__(self) -> None:
        if self._address is not None:
            self._release(self._address)

    def begin(self, threads: int) -> None:
        """Submit the job to the threads at an address; see :attr:`BackgroundThreads.address`."""
        self._address = brief_core().penstock_task_submit(threads, self._function, self._argument, self._times)

    @property
    def is_done(self) -> bool:
        """Whether the job is done."""
        done = self._address is not None and bool(brief_core().penstock_task_is_done(self._address))
        if done:
            # The job is finished, so its data need not be kept alive any longer.
            self._keep = None
        return done

    def wait(self) -> None:
        """Wait, without holding the GIL, until the submitted job is done."""
        # In a forked process, the threads of the parent do not exist, and waiting for them would never end.
        if self._forks == len(_forks) and not self.is_done:
            core().penstock_task_wait(self._address)
            self._keep = None


class SharedWork:
    """Work that is divided into shares, which threads take one by one, and calls that are made once all shares are done; all of it is
    compiled code.

    The calls may be prepared while threads are already working. The thread that completes the last share makes them; if
    :meth:`follow` is called only after that, they are made then.

    Args:
        task: the address of a C function whose arguments are an address and the number of a share.
        argument: that address.
        shares: the number of shares.
        keep: an object to keep alive until all shares and calls are done.
        threads: the threads that do the shares and make the calls; None: the calling thread does.
    """

    __slots__ = ("_address", "_forks", "_is_done", "_kept", "_release", "_threads")

    def __init__(
        self, task: int, argument: int, shares: int, keep: object, threads: BackgroundThreads | None = None
    ) -> None:
        self._threads, self._forks, self._is_done = threads, len(_forks), False
        self._kept, self._release = [keep], brief_core().penstock_work_release
        self._address: int = brief_core().penstock_work_create(task, argument, shares)
        if threads is None:
            core().penstock_work_help(self._address)
        else:
            threads.keep(self)
            brief_core().penstock_work_submit(self._address, threads.address, min(shares, len(threads)))

    def __del__(self) -> None:
        self._release(self._address)

    def follow(self, calls: np.ndarray, keep: object = None) -> None:
        """Set the calls to make when all shares are done; call this exactly once, even after an error.

        Args:
            calls: rows of CALL_WORDS words; int64.
            keep: an object to keep alive until the calls are made.
        """
        self._kept += calls, keep
        if brief_core().penstock_work_follow(self._address, calls.ctypes.data, len(calls)):
            threads = self._threads if len(calls) else None
            library = core() if threads is None and len(calls) else brief_core()
            library.penstock_work_conclude(self._address, None if threads is None else threads.address)

    def help(self) -> None:
        """Do shares on the calling thread, too, until none are left."""
        core().penstock_work_help(self._address)

    @property
    def is_done(self) -> bool:
        """Whether all shares are done and all calls made."""
        if not self._is_done and brief_core().penstock_work_is_done(self._address):
            self._end()
        return self._is_done

    def wait(self) -> int:
        """Wait until the calls are made, without holding the GIL; return 0, or the result of the call that failed."""
        # In a forked process, the threads of the parent do not exist, and waiting for them would never end.
        if self._forks != len(_forks) and not self.is_done:
            return 0
        library = brief_core() if self.is_done else core()
        status: int = library.penstock_work_wait(self._address)
        self._end()
        return status

    def _end(self) -> None:
        self._is_done = True
        self._kept.clear()


_threads: weakref.WeakSet[BackgroundThreads] = weakref.WeakSet()


@atexit.register
def _close_threads() -> None:
    """End the threads at exit: a thread that is still inside a C++ library would abort the process."""
    for threads in list(_threads):
        with contextlib.suppress(RuntimeError):
            threads.close()
