"""Calls that launch a GPU's kernels for ranges of samples, as :func:`penstock.core.threads.make_calls` makes them."""

from __future__ import annotations

import numpy as np
from numba import carray

from penstock.kernels.cpu.foreign import words_from
from penstock.kernels.cpu.options import brief

MOST_ARGUMENTS = 12
"""Of a kernel."""
ARGUMENT_WORDS = 3
"""Of a kernel's argument: a value, what each sample before those of a launch adds to it, and, for the address of something uploaded,
its number and one."""
FUNCTION_WORDS = 7
"""Of a kernel: its handle, shared memory, the first of its arguments and how many there are; of what is uploaded, the number of
where its samples' blocks begin, that of its descriptors, and the bytes of one of these."""
_FUNCTION, _SHARED, _FIRST, _ARGUMENTS, _STARTS, _DESCRIPTORS, _STEP = range(FUNCTION_WORDS)
_BEFORE = 3
_WORD = 8


def room_for_arguments(launches: int) -> np.ndarray:
    """Memory for the arguments of so many launches."""
    return np.empty((launches, 2, MOST_ARGUMENTS), np.int64)


@brief
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

    Kernels get where each sample's blocks begin, the descriptors, the number of samples, and then their own arguments.

    Args:
        steps: which kernel is launched for which samples, from one number to another, in rows; those for one kernel ascend.
        functions: for each kernel FUNCTION_WORDS. In place of where each sample's blocks begin, their numbers are uploaded.
        arguments: all kernels', each of ARGUMENT_WORDS words.
        offsets: where what is uploaded lies, in bytes.
        host, device: addresses from which on it lies before it is uploaded, and afterwards.
        common: the driver's function, the threads of a block, and the stream.
        calls: rows of CALL_WORDS zeros, as many as there are steps.
        words: of :func:`room_for_arguments`.
    """
    launch, threads, stream = common
    made = 0
    for number in range(len(steps)):
        kind, first, last = steps[number]
        own = functions[kind * FUNCTION_WORDS :]
        begin = offsets[own[_STARTS]] + _WORD * first
        starts = carray(words_from(host + begin), (last - first,))
        blocks = 0
        for sample in range(last - first):
            more = starts[sample]
            starts[sample] = blocks
            blocks += more
        if blocks == 0:
            continue
        values, addresses = words[made]
        values[0], values[1] = device + begin, device + offsets[own[_DESCRIPTORS]] + own[_STEP] * first
        values[2] = last - first
        for place in range(own[_ARGUMENTS]):
            value, step, upload = arguments[(own[_FIRST] + place) * ARGUMENT_WORDS :][:ARGUMENT_WORDS]
            if upload > 0:
                value += device + offsets[upload - 1]
            values[_BEFORE + place] = value + step * first
        for place in range(_BEFORE + own[_ARGUMENTS]):
            addresses[place] = values[place:].ctypes.data
        call = calls[made]
        call[0], call[1] = launch, own[_FUNCTION]
        call[2], call[3], call[4] = blocks, 1, 1
        call[5], call[6], call[7] = threads, 1, 1
        call[8], call[9], call[10] = own[_SHARED], stream, addresses.ctypes.data
        made += 1
    return made
