"""Random starts of windows."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.philox import draw_below
from penstock.kernels.random_keys import Key


@kernel
def draw_starts(
    key: Key,
    streams: np.ndarray,
    start: np.uint64,
    lows: np.ndarray,
    highs: np.ndarray,
    starts: np.ndarray,
    always: bool,
) -> None:
    """Draw a start from each range, both ends included; without ``always``, nothing is drawn for a range of one number.

    Args:
        key, streams, start: the random streams of the samples.
        lows, highs: the first and the last number of each range; int64 of shape (samples, axes).
        starts: filled; int64 of the same shape.
    """
    for i in range(len(streams)):
        n = start
        for axis in range(lows.shape[1]):
            low, high = lows[i, axis], highs[i, axis]
            starts[i, axis] = low
            if always or low != high:
                offset, n = draw_below(key, streams[i], n, np.uint64(high - low + 1))
                starts[i, axis] += np.int64(offset)
