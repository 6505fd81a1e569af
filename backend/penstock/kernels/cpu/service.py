"""The loop of the threads of :class:`penstock.kernels.background.BackgroundThreads`, which don't return to Python until they end."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.foreign import call, counted_at, set_word
from penstock.kernels.cpu.options import brief, kernel

FUNCTION, ARGUMENT, DONE, TIMES, UNTOLD, ENDED, JOB_WORDS = range(7)
"""The words of a job: the address of a function, its argument, the semaphore to post after each call, or 0, how often it is still to
be called, for how many of these calls no thread was woken yet, and how many have ended."""
_WOKEN = 2
_WORD = 8


@brief
def add_job(place: int, function: int, argument: int, done: int, times: int, waiting: int, sem_post: int) -> None:
    """Puts a job where :func:`serve` finds it, from an address on, and tells one of the threads that wait.

    Args:
        function, argument, done, times: the first words of the job.
        waiting, sem_post: as for :func:`serve`.
    """
    set_word(place + _WORD * FUNCTION, function)
    set_word(place + _WORD * ARGUMENT, argument)
    set_word(place + _WORD * DONE, done)
    set_word(place + _WORD * TIMES, times)
    set_word(place + _WORD * UNTOLD, times - 1)
    set_word(place + _WORD * ENDED, 0)
    call(sem_post, (waiting,))


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
        function, argument, done, ended = job[FUNCTION], job[ARGUMENT], job[DONE], job[ENDED:].ctypes.data
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
        if done != 0:
            call(sem_post, (done,))
        # What the job needs may be gone after that.
        counted_at(ended)
