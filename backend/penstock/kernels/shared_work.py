"""Work for threads without Python: shares that they take, and calls of C functions when all shares are done."""

from __future__ import annotations

import os

import numpy as np

from penstock.kernels.background import BackgroundThreads, Semaphore, Task, address_of
from penstock.kernels.cpu import shares as compiled

NO_CALLS = np.zeros((0, compiled.CALL_WORDS), np.int64)
"""A list of nothing, for :meth:`SharedWork.follow`."""
_SHARE: int = compiled.share_work.address or 0
_CONCLUDE: int = compiled.conclude_work.address or 0
_POST = address_of("sem_post")
# One for each fork on the way from the first process to this one. Counting them takes no call of the system.
_forks: list[None] = []
os.register_at_fork(after_in_child=lambda: _forks.append(None))


class SharedWork:
    """Shares of work, and calls that follow; all in compiled code.

    The calls may be made up while threads are at work already: whoever comes last, be it a thread with its share or Python with
    the calls, has them made.

    Args:
        task: address of a C function of an address and of the number of a share.
        argument: that address.
        shares: how many.
        keep: object to keep alive until all is done.
        threads: take the shares and make the calls; None: the thread that asks for them does.
    """

    def __init__(
        self, task: int, argument: int, shares: int, keep: object, threads: BackgroundThreads | None = None
    ) -> None:
        self._threads = threads
        self._kept = [keep]
        self._done, self._is_done, self._forks = Semaphore(), False, len(_forks)
        words = self._words = np.zeros(compiled.WORK_WORDS, np.int64)
        self._address: int = compiled.describe_work(words, task, argument, shares, self._done.address, _POST)
        if threads is None:
            compiled.take_shares(self._address)
        else:
            # Threads that come late find nothing to do, but need the words until then.
            threads.submit(Task(_SHARE, self._address, self, min(shares, len(threads))))

    def follow(self, calls: np.ndarray, keep: object = None) -> None:
        """Has calls made when all shares are done; to be called once, whatever happens.

        Args:
            calls: rows of CALL_WORDS words; int64.
            keep: object to keep alive until then.
        """
        self._kept += calls, keep
        if not compiled.end_with(self._address, calls):
            return
        if self._threads is None or not len(calls):
            compiled.conclude(self._address)
        else:
            self._threads.submit(Task(_CONCLUDE, self._address, self))

    def help(self) -> None:
        """Takes shares on this thread, too, as long as there are any."""
        compiled.take_shares(self._address)

    @property
    def is_done(self) -> bool:
        """Whether all shares are done and all calls made."""
        if not self._is_done and self._done.try_wait():
            self._end()
        return self._is_done

    def wait(self) -> int:
        """Waits for the calls, without holding the GIL; returns 0, or what the one that failed returned."""
        # The threads of the process that this one was forked from are not here.
        if not self._is_done and len(_forks) == self._forks:
            self._done.wait()
            self._end()
        return int(self._words[compiled.STATUS])

    def _end(self) -> None:
        # For others that wait.
        self._done.post()
        self._is_done = True
        self._kept.clear()
