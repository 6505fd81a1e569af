"""The loop of a :class:`penstock.kernels.background.BackgroundThread`, which doesn't return to Python until it ends."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.foreign import call
from penstock.kernels.cpu.options import kernel


@kernel
def serve(jobs: np.ndarray, waiting: int, room: int, sem_wait: int, sem_post: int) -> None:
    """Runs jobs until one has no function.

    Args:
        jobs: ring buffer, int64 of shape (n, 3): a function's address, its argument, and the semaphore to post
            afterwards.
        waiting: the semaphore that counts queued jobs.
        room: the semaphore that counts free places.
        sem_wait, sem_post: addresses of the C library's functions.
    """
    turn = 0
    while True:
        # A signal may interrupt the wait.
        while call(sem_wait, (waiting,)) != 0:
            pass
        function, argument, done = jobs[turn, 0], jobs[turn, 1], jobs[turn, 2]
        if function == 0:
            return
        turn = (turn + 1) % len(jobs)
        call(function, (argument,))
        call(sem_post, (done,))
        call(sem_post, (room,))
