"""The kernel that picks samples from a reader's buffer."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import njit

# The constants of :class:`penstock.kernels.random_streams.MinimalStandard`.
_MODULUS, _FACTOR = 2**31 - 1, 16807


# Compiled without releasing the GIL: waiting to get it back could take longer than the work.
@njit(error_model="numpy")
def pick(
    buffer: np.ndarray, following: np.ndarray, start: int, end: int, target: int, state: int, picked: np.ndarray
) -> int:
    """Pick samples from a span of the buffer, and add as many samples that follow in storage order.

    Args:
        buffer: sample indices, int64; positions are taken modulo the buffer's size.
        following: the sample indices to add, one for each picked sample.
        start, end: the span to pick from, end exclusive.
        target: the position at which to add samples. If it equals ``end``, the span grows with each added sample.
        state: the random generator's state; negative: pick the span's first sample instead of a random one.
        picked: the picked sample indices; output.

    Returns:
        The generator's new state.
    """
    capacity = len(buffer)
    for i in range(len(picked)):
        place = start
        if state >= 0:
            bound = end - start
            scaling = (_MODULUS - 2) // bound
            state = state * _FACTOR % _MODULUS
            while state - 1 >= scaling * bound:
                state = state * _FACTOR % _MODULUS
            place += (state - 1) // scaling
        picked[i] = buffer[place % capacity]
        buffer[place % capacity] = buffer[start % capacity]
        start += 1
        buffer[target % capacity] = following[i]
        if target == end:
            end += 1
        target += 1
    return state
