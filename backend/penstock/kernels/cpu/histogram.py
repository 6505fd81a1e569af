"""Histograms of images, and images spread over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.cpu.simd import at, load_word

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
# Counters that are used in turn: neighbouring pixels are often alike, and a counter must be written before it is read.
_TURNS = 4


@njit(**_OPTIONS)
def _equalizing_table(counts, total, table):  # type: ignore[no-untyped-def]
    """To each value the share of the pixels (but those of the least one) that are not above it, from 0 to 255."""
    least = 0
    while counts[least] == 0:
        least += 1
    if counts[least] == total:
        table[:] = least
        return
    scale = np.float32(255) / np.float32(total - counts[least])
    table[: least + 1] = 0
    below = 0
    for value in range(least + 1, 256):
        below += counts[value]
        # To the nearest even number where it is in the middle.
        table[value] = np.uint8(np.rint(np.float32(below) * scale))


@njit(**_OPTIONS)
def _count(source, channels, flat):  # type: ignore[no-untyped-def]
    """Adds an image to counters of shape (channels, _TURNS, 256), flat."""
    step = _TURNS * 256
    if channels == 3:
        # In one pass over the pixels.
        for p in range(source.size // 3):
            place, turn = p * 3, p % _TURNS * 256
            flat[turn + at(source, place)] += 1
            flat[turn + step + at(source, place + 1)] += 1
            flat[turn + 2 * step + at(source, place + 2)] += 1
        return
    for channel in range(channels):
        for p in range(source.size // channels):
            flat[channel * step + p % _TURNS * 256 + at(source, p * channels + channel)] += 1


@njit(**_OPTIONS)
def _look_up(source, channels, table, target):  # type: ignore[no-untyped-def]
    """Each value's entry in its channel's table of 256, which are one after the other."""
    begin = 0
    if channels == 3:
        # Eight pixels at a time, read as three words.
        begin = source.size - source.size % 24
        for block in range(0, begin, 24):
            for word in range(0, 24, 8):
                values = load_word(source, block + word)
                for i in range(8):
                    entry = (values >> np.uint64(8 * i)) & np.uint64(255)
                    # Unsigned indices are not looked at for a sign.
                    target[np.uint64(block + word + i)] = at(table, np.uint64((word + i) % 3 * 256) + entry)
    for channel in range(channels):
        for place in range(begin + channel, source.size, channels):
            target[place] = at(table, channel * 256 + at(source, place))


@njit(**_OPTIONS)
def _equalize(source, channels, target):  # type: ignore[no-untyped-def]
    """Both flat, of pixels of so many channels."""
    counts = np.zeros((channels, _TURNS, 256), np.int32)
    _count(source, channels, counts.ravel())
    tables = np.empty((channels, 256), np.uint8)
    for channel in range(channels):
        _equalizing_table(counts[channel].sum(axis=0), source.size // channels, tables[channel])
    _look_up(source, channels, tables.ravel(), target)


def equalize(source: np.ndarray, target: np.ndarray) -> None:
    """Spreads each channel's values so that its histogram is as flat as can be.

    Args:
        source, target: of uint8 and shape (..., channels), contiguous, not empty.
    """
    _equalize(source.reshape(-1), source.shape[-1], target.reshape(-1))
