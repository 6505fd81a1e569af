"""Detection of the loud part of signals on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, launch, locate, scratch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, cuda_type, records


class _Signal(NamedTuple):
    """The kernels' description of one signal.

    Attributes:
        power, peaks: the mean square of the window that ends at each element, and the highest mean square in each tile.
        begin, length: the outputs, an int32 each.
        size, tiles, tile: number of elements, number of tiles, and elements per tile, a multiple of ``_STEP``.
    """

    source: Pointer
    power: Pointer
    peaks: Pointer
    begin: Pointer
    length: Pointer
    size: Int64
    tiles: Int64
    tile: Int64
    window: Int64


# The number of consecutive elements that a thread sums.
_RUN = 8
SOURCE = KernelSource(__file__, _Signal, RUN=_RUN)
# The number of elements that a block processes at a time. The size of a tile is a multiple of it that is at least the window's
# length: a block reads a window before its tile, which must not take longer than the tile.
_STEP = THREADS * _RUN


def find_loud_regions(jobs: Sequence[tuple[OnGpu, int, OnGpu, OnGpu]], ratio: float, reference: float | None) -> None:
    """Find the loud part of each signal: from the start of the first window whose mean square reaches the threshold to the end of the
    last one. Takes two launches, whatever the lengths of signals and windows.

    Args:
        jobs: ``(signal, window, begin, length)`` for each sample: the signal, the number of elements of a window, and two int32
            outputs.
        ratio: the threshold as a fraction of the reference.
        reference: the mean square to which the threshold is relative; None: the highest mean square of each signal.
    """
    located = [(locate(signal), window, locate(begin), locate(length)) for signal, window, begin, length in jobs]
    if not located:
        return
    tiles = [-(-window // _STEP) * _STEP for _, window, _, _ in located]
    counts = [-(-signal.size // tile) for (signal, *_), tile in zip(located, tiles)]
    powers = scratch([(signal.size,) for signal, *_ in located], np.float32)
    peaks = scratch([(count,) for count in counts], np.float32)
    entries = [
        _Signal(
            *(signal.address, power.address, peak.address, begin.address, length.address),
            *(signal.size, count, tile, window),
        )
        for (signal, window, begin, length), power, peak, count, tile in zip(located, powers, peaks, counts, tiles)
    ]
    descriptors = records(_Signal, entries)
    launch(SOURCE.kernel(f"moving_power<{cuda_type(located[0][0].dtype)}>"), descriptors, counts)
    launch(
        SOURCE.kernel("loud_region"),
        descriptors,
        [1] * len(located),
        np.float64(ratio),
        np.float64(0 if reference is None else reference),
        np.int32(reference is None),
    )
