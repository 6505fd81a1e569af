"""The loop of the threads of :class:`penstock.kernels.background.BackgroundThreads`, which don't return to Python until they end."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.foreign import call
from penstock.kernels.cpu.options import kernel

FUNCTION, ARGUMENT, DONE, TIMES, UNTOLD, JOB_WORDS = range(6)
"""The words of a job: the address of a function, its argument, the semaphore to post after each call, how often it is still to be
called, and for how many of these calls no thread was woken yet."""
_WOKEN = 2


@kernel
def serve(jobs: np.ndarray, turn: np.ndarray, waiting: int, turning: int, sem_wait: int, sem_post: int) -> None:
    """Runs jobs until one has no function.

    Args:
        jobs: ring buffer, int64 of shape (n, JOB_WORDS).
        turn: one int64: the place of the next job.
        waiting: the semaphore that threads wait for until there are calls to be made.
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
        if job[TIMES] == 0:
            turn[0] = (turn[0] + 1) % len(jobs)
        # Threads wake one another, as waking all of them would hold up whoever brings the job.
        told = min(job[UNTOLD], _WOKEN)
        job[UNTOLD] -= told
        call(sem_post, (turning,))
        for _ in range(told):
            call(sem_post, (waiting,))
        if function == 0:
            return
        call(function, (argument,))
        call(sem_post, (done,))
