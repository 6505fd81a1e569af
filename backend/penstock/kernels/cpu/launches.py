"""Calls that launch a GPU's kernels for ranges of samples, as :func:`penstock.kernels.cpu.shares.make_calls` makes them."""

from __future__ import annotations

import numpy as np
from numba import carray

from penstock.kernels.cpu.foreign import words_from
from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.shares import CALL_WORDS

MOST_ARGUMENTS = 12
"""Of a kernel."""
ARGUMENT_WORDS = 3
"""Of a kernel's argument: a value, what each sample before those of a launch adds to it, and, for the address of something uploaded,
its number and one."""
_STARTS, _DESCRIPTORS, _COUNT = range(3)
_FUNCTION, _SHARED, _FIRST, _ARGUMENTS, _FUNCTION_WORDS = range(5)
_WORD = 8


def room_for_launches(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory for so many calls, and for the arguments that they refer to."""
    return np.zeros((count, CALL_WORDS), np.int64), np.empty((count, 2, MOST_ARGUMENTS), np.int64)


@kernel
def list_launches(
    steps: np.ndarray,
    functions: np.ndarray,
    arguments: np.ndarray,
    offsets: np.ndarray,
    host: int,
    device: int,
    common: tuple[int, int, int],
    calls: np.ndarray,
    words: np.ndarray,
) -> int:
    """Fills in calls that launch kernels; returns how many there are, as those without blocks are left out.

    Args:
        steps: which kernel is launched for which samples, from one number to another, in rows; those for one kernel ascend.
        functions: each kernel's handle, shared memory, first argument and number of arguments.
        arguments: all kernels', each of ARGUMENT_WORDS words. The first arguments of a kernel are where each sample's blocks
            begin, in whose place their numbers are uploaded; the descriptors; and the number of samples.
        offsets: where what is uploaded lies, in bytes.
        host, device: addresses from which on it lies before it is uploaded, and afterwards.
        common: the driver's function, the threads of a block, and the stream.
        calls, words: of :func:`room_for_launches`.
    """
    launch, threads, stream = common
    made = 0
    for number in range(len(steps)):
        kind, first, last = steps[number]
        own = functions[kind * _FUNCTION_WORDS :]
        given = arguments[own[_FIRST] * ARGUMENT_WORDS :]
        place = host + offsets[given[_STARTS * ARGUMENT_WORDS + 2] - 1]
        starts = carray(words_from(place + _WORD * first), (last - first,))
        blocks = 0
        for sample in range(last - first):
            more = starts[sample]
            starts[sample] = blocks
            blocks += more
        if blocks == 0:
            continue
        values, addresses = words[made]
        for place in range(own[_ARGUMENTS]):
            value, step, upload = given[place * ARGUMENT_WORDS : (place + 1) * ARGUMENT_WORDS]
            if upload > 0:
                value += device + offsets[upload - 1]
            values[place] = last - first if place == _COUNT else value + step * first
            addresses[place] = values[place:].ctypes.data
        call = calls[made]
        call[0], call[1] = launch, own[_FUNCTION]
        call[2], call[3], call[4] = blocks, 1, 1
        call[5], call[6], call[7] = threads, 1, 1
        call[8], call[9], call[10] = own[_SHARED], stream, addresses.ctypes.data
        made += 1
    return made
