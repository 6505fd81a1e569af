"""The loop of the threads of :class:`penstock.kernels.background.BackgroundThreads`, which don't return to Python until they end."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.foreign import call
from penstock.kernels.cpu.options import kernel

FUNCTION, ARGUMENT, DONE, TIMES, JOB_WORDS = range(5)
"""The words of a job: the address of a function, its argument, the semaphore to post after each call, and how often it is to be
called."""


@kernel
def serve(
    jobs: np.ndarray, turn: np.ndarray, waiting: int, room: int, turning: int, sem_wait: int, sem_post: int
) -> None:
    """Runs jobs until one has no function.

    Args:
        jobs: ring buffer, int64 of shape (n, JOB_WORDS).
        turn: one int64: the place of the next job.
        waiting: the semaphore that threads wait for until there are calls to be made.
        room: the semaphore that counts free places.
        turning: the semaphore that a thread has while it looks at jobs.
        sem_wait, sem_post: addresses of the C library's functions.
    """
    while True:
        # A signal may interrupt the wait.
        while call(sem_wait, (waiting,)) != 0:
            pass
        while call(sem_wait, (turning,)) != 0:
            pass
        job = jobs[turn[0]]
        function, argument, done = job[FUNCTION], job[ARGUMENT], job[DONE]
        job[TIMES] -= 1
        is_last = job[TIMES] == 0
        if is_last:
            turn[0] = (turn[0] + 1) % len(jobs)
        call(sem_post, (turning,))
        # Threads wake one another, as waking all of them would hold up whoever brings the job.
        call(sem_post, (room if is_last else waiting,))
        if function == 0:
            return
        call(function, (argument,))
        call(sem_post, (done,))
