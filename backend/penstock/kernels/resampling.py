"""Audio resampling for the operators that change sample rates."""

from __future__ import annotations

from functools import cache

import numpy as np


def lobes_of_quality(quality: float) -> int:
    """Return the number of zeros of the sinc on each side of the filter: 3 for quality 0, 16 for 50, 64 for 100.

    Raises:
        RuntimeError: the quality is not between 0 and 100.
    """
    if not 0 <= quality <= 100:
        raise RuntimeError(f"`quality` out of range: {quality:g}. Valid range is [0..100]")
    return int(0.007 * quality * quality - 0.09 * quality + 3 + 0.5)


def resample_signal(signal: np.ndarray, scale: float, length: int, lobes: int) -> np.ndarray:
    """Return ``length`` samples of a float32 signal (time,) or (time, channels), resampled to ``scale`` times its rate."""
    from penstock.kernels.cpu import audio

    columns = signal.reshape(len(signal), -1)
    out = np.empty((length, columns.shape[1]), np.float32)
    audio.resample(columns, 1 / scale, lobes, filter_phases(lobes), out)
    return out.reshape(length, *signal.shape[1:])


@cache
def filter_table(lobes: int) -> np.ndarray:
    """Return the table of the resampling filter with ``lobes`` lobes on each side."""
    from penstock.kernels.cpu.audio import sinc_table

    return sinc_table(lobes)


@cache
def filter_phases(lobes: int) -> np.ndarray:
    """Return :func:`filter_table` in the order in which kernels read it."""
    from penstock.kernels.cpu.audio import sinc_phases

    return sinc_phases(filter_table(lobes), lobes)
