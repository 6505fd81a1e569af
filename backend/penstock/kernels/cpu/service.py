"""What a :class:`penstock.kernels.background.BackgroundThread` does: it never comes back to Python before its end."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.kernels.cpu.foreign import call
from penstock.kernels.cpu.options import OPTIONS


@njit(**OPTIONS)
def serve(jobs: np.ndarray, waiting: int, room: int, sem_wait: int, sem_post: int) -> None:
    """Runs jobs until one without a function comes.

    Args:
        jobs: int64 of shape (n, 3), taken in turn: a function's address, its argument, and the semaphore that is raised
            afterwards.
        waiting: the semaphore that counts the jobs that are there.
        room: the semaphore that counts the jobs that may be added.
        sem_wait, sem_post: the C library's functions.
    """
    turn = 0
    while True:
        # A signal may end the wait before its time.
        while call(sem_wait, (waiting,)) != 0:
            pass
        function, argument, done = jobs[turn, 0], jobs[turn, 1], jobs[turn, 2]
        if function == 0:
            return
        turn = (turn + 1) % len(jobs)
        call(function, (argument,))
        call(sem_post, (done,))
        call(sem_post, (room,))
