"""Shares of work that threads take without Python, and the calls of C functions that whoever comes last makes."""

from __future__ import annotations

import numpy as np
from numba import types

from penstock.kernels.cpu.foreign import call, counted_at, set_word, word_at
from penstock.kernels.cpu.options import brief, cfunc, kernel

# The words of the work: counts of shares that are taken, and of parties that are through (each share, and Python); how many
# shares and parties there are; a function of an address and a share's number, and that address; the calls, and how many; what
# the call that failed returned; the semaphore to post in the end, and the C library's function for that.
TAKEN, THROUGH, SHARES, PARTIES, TASK, ARGUMENT, CALLS, COUNT, STATUS, DONE, SEM_POST, WORK_WORDS = range(12)

CALL_ARGUMENTS = 11
"""Of CUDA's launch of a kernel."""
CALL_WORDS = 1 + CALL_ARGUMENTS
"""A call is a function's address and its arguments, of which it may take fewer."""
_WORD = 8


@kernel
def make_calls(calls: int, count: int) -> int:
    """Calls functions, which return 0 unless they fail; returns what the first one that fails does, or 0.

    Args:
        calls: an address, from which on there are ``count`` times CALL_WORDS words.
    """
    for number in range(count):
        own = calls + number * CALL_WORDS * _WORD
        status = call(
            word_at(own),
            (
                word_at(own + 1 * _WORD),
                word_at(own + 2 * _WORD),
                word_at(own + 3 * _WORD),
                word_at(own + 4 * _WORD),
                word_at(own + 5 * _WORD),
                word_at(own + 6 * _WORD),
                word_at(own + 7 * _WORD),
                word_at(own + 8 * _WORD),
                word_at(own + 9 * _WORD),
                word_at(own + 10 * _WORD),
                word_at(own + 11 * _WORD),
            ),
        )
        if status != 0:
            return status
    return 0


@brief
def describe_work(words: np.ndarray, task: int, argument: int, shares: int, done: int, sem_post: int) -> int:
    """Fills in words of which all are 0; returns their address."""
    words[SHARES], words[PARTIES] = shares, shares + 1
    words[TASK], words[ARGUMENT] = task, argument
    words[DONE], words[SEM_POST] = done, sem_post
    return words.ctypes.data


@brief
def end_with(work: int, calls: np.ndarray) -> bool:
    """Notes which calls follow, and that Python is through; as :func:`end_one`."""
    set_word(work + CALLS * _WORD, calls.ctypes.data)
    set_word(work + COUNT * _WORD, len(calls))
    return end_one(work)


@brief
def end_one(work: int) -> bool:
    """Notes that one more party is through; whether that was the last one, who has to call :func:`conclude`."""
    return counted_at(work + THROUGH * _WORD) + 1 == word_at(work + PARTIES * _WORD)


@kernel
def conclude(work: int) -> int:
    """Makes the calls, and tells that the work is done."""
    status = make_calls(word_at(work + CALLS * _WORD), word_at(work + COUNT * _WORD))
    set_word(work + STATUS * _WORD, status)
    # Nothing may be read of the work after that.
    call(word_at(work + SEM_POST * _WORD), (word_at(work + DONE * _WORD),))
    return 0


@kernel
def take_shares(work: int) -> int:
    """Takes shares until there is none left; returns 0."""
    count = word_at(work + SHARES * _WORD)
    while True:
        share = counted_at(work + TAKEN * _WORD)
        if share >= count:
            return 0
        call(word_at(work + TASK * _WORD), (word_at(work + ARGUMENT * _WORD), share))
        if end_one(work):
            conclude(work)


@cfunc(types.int32(types.int64), cache=True)
def share_work(work: int) -> int:
    """:func:`take_shares` for other threads."""
    return take_shares(work)


@cfunc(types.int32(types.int64), cache=True)
def conclude_work(work: int) -> int:
    """:func:`conclude` for another thread."""
    return conclude(work)
