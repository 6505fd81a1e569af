"""Where signals are loud, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import cuda_type, kernel, launch, locate, scratch

_SIGNAL = np.dtype(
    [
        *((name, np.uint64) for name in ("source", "power", "peaks", "begin", "length")),
        *((name, np.int64) for name in ("count", "tiles", "tile", "window")),
    ],
    align=True,
)
# What a block takes at a time; a tile is as many of these as its window is worth, which it reads first.
_STEP = 2048


def find_loud_regions(jobs: Sequence[tuple[Any, int, Any, Any]], ratio: float, reference: float | None) -> None:
    """The part of each signal from the first to the last element up to which the window's mean square is high enough.

    In two launches, whatever the signals' lengths.

    Args:
        jobs: ``(signal, window, begin, length)`` for each sample; the last two are int32, to be filled: the part
            begins with the first element's window.
        ratio: the threshold as a fraction of the reference.
        reference: None: the highest mean square of each signal.
    """
    located = [(locate(signal), window, locate(begin), locate(length)) for signal, window, begin, length in jobs]
    if not located:
        return
    tiles = [-(-window // _STEP) * _STEP for _, window, _, _ in located]
    counts = [-(-signal.size // tile) for (signal, *_), tile in zip(located, tiles)]
    powers = scratch([(signal.size,) for signal, *_ in located], np.float32)
    peaks = scratch([(count,) for count in counts], np.float32)
    entries = [
        (signal.address, power.address, peak.address, begin.address, length.address, signal.size, count, tile, window)
        for (signal, window, begin, length), power, peak, count, tile in zip(located, powers, peaks, counts, tiles)
    ]
    descriptors = np.array(entries, _SIGNAL)
    launch(kernel(__file__, f"moving_power<{cuda_type(located[0][0].dtype)}>"), descriptors, counts)
    launch(
        kernel(__file__, "loud_region"),
        descriptors,
        [1] * len(located),
        np.float64(ratio),
        np.float64(0 if reference is None else reference),
        np.int32(reference is None),
    )
