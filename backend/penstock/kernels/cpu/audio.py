"""Kernels for audio: frames, power, weighted sums of rows, filters, resampling. All use float32 and release the GIL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.kernels.cpu.code_generation import Vector
from penstock.kernels.cpu.options import inner, njit
from penstock.kernels.cpu.simd import at, load, store, total, transposed, zeros


@njit(nogil=True)
def reflected(index: int, count: int) -> int:
    """Return the index in [0, count) onto which ``index`` is reflected; the first and the last element are not repeated."""
    if count == 1:
        return 0
    period = 2 * count - 2
    index = abs(index) % period
    return period - index if index >= count else index


@njit(nogil=True)
def _at(signal: np.ndarray, index: int, reflect: bool) -> Any:
    if 0 <= index < signal.size:
        return np.float32(signal[index])
    return np.float32(signal[reflected(index, signal.size)]) if reflect else np.float32(0)


@njit(nogil=True)
def windowed_frames(
    signal: np.ndarray, window: np.ndarray, step: int, start: int, reflect: bool, out: np.ndarray
) -> None:
    """Compute overlapping frames of a signal times a window: ``out[t, k] = signal[start + t * step + k] * window[k]``.

    The signal is padded with its reflection or zeros, the window with zeros.
    """
    length = window.size
    for t in range(out.shape[0]):
        row = out[t]
        first = start + t * step
        if first >= 0 and first + length <= signal.size:
            piece = signal[first : first + length]
            for k in range(length):
                row[k] = np.float32(piece[k]) * window[k]
        else:
            for k in range(length):
                row[k] = _at(signal, first + k, reflect) * window[k]
        row[length:] = 0


@njit(nogil=True)
def spectral_power(spectrum: np.ndarray, magnitude: bool, out: np.ndarray) -> None:
    """Compute ``out = |spectrum|**2``, or with ``magnitude`` its square root; both arrays are 2-D with any strides."""
    tile = 16
    rows, columns = spectrum.shape
    for top in range(0, rows, tile):
        for left in range(0, columns, tile):
            for i in range(top, min(top + tile, rows)):
                for j in range(left, min(left + tile, columns)):
                    value = spectrum[i, j]
                    power = value.real * value.real + value.imag * value.imag
                    out[i, j] = math.sqrt(power) if magnitude else power


# The number of columns that are summed at a time.
COLUMNS = 32


@njit(nogil=True)
def used_widths(rows: int, weights: np.ndarray) -> np.ndarray:
    """Return, for each of the ``rows`` of weights, its length up to the last nonzero weight."""
    width = weights.size // rows
    used = np.zeros(rows, np.int64)
    for i in range(weights.size):
        if weights[i] != 0:
            used[i // width] = i % width + 1
    return used


@njit(nogil=True)
def sum_rows(
    source: np.ndarray,
    columns: int,
    starts: np.ndarray,
    widths: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Same as :func:`weighted_rows`, for flat arrays; ``widths`` come from :func:`used_widths`."""
    width = weights.size // starts.size
    for m in range(starts.size):
        begin, end, row = m * width, m * width + at(widths, m), (at(starts, m) - m * width) * columns
        t = 0
        while t < columns:
            if columns >= COLUMNS:
                # The last block overlaps the previous one, so that all blocks have the same size.
                t = min(t, columns - COLUMNS)
                block = zeros(COLUMNS)
                for k in range(begin, end):
                    block = block + load(source, row + k * columns + t, COLUMNS) * at(weights, k)
                store(out, m * columns + t, block)
                t += COLUMNS
            else:
                single = zeros(1)
                for k in range(begin, end):
                    single = single + load(source, row + k * columns + t, 1) * at(weights, k)
                store(out, m * columns + t, single)
                t += 1


@njit(nogil=True)
def _weighted_rows(source: np.ndarray, columns: int, starts: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    sum_rows(source, columns, starts, used_widths(starts.size, weights), weights, out)


def weighted_rows(source: np.ndarray, starts: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Compute ``out[m] = sum over k of weights[m, k] * source[starts[m] + k]``, up to each row's last nonzero weight.

    All arrays are contiguous, and float32 except ``starts``.
    """
    _weighted_rows(source.reshape(-1), source.shape[1], starts, weights.reshape(-1), out.reshape(-1))


@njit(nogil=True)
def preemphasis(signal: np.ndarray, coefficient: np.float32, before: np.float32, out: np.ndarray) -> None:
    """Compute ``out[i] = signal[i] - coefficient * signal[i - 1]``, with ``before`` for ``signal[-1]``."""
    previous = before
    for i in range(out.size):
        value = np.float32(signal[i])
        out[i] = value - coefficient * previous
        previous = value


@njit(nogil=True)
def _squared(signal: np.ndarray, index: int) -> float:
    value = np.float64(at(signal, index))
    return value * value


@njit(nogil=True)
def moving_power(signal: np.ndarray, window: int, reset_interval: int, out: np.ndarray) -> None:
    """Compute the mean square over the ``window`` elements up to each one, with zeros before the first.

    The running sum restarts every ``reset_interval`` elements, so that rounding errors do not accumulate.
    """
    interval = reset_interval if reset_interval > 0 else max(signal.size, 1)
    scale = 1 / window
    for begin in range(0, signal.size, interval):
        end, total = min(begin + interval, signal.size), 0.0
        for k in range(max(0, begin - window + 1), begin):
            total += _squared(signal, k)
        # The difference between the entering and the leaving element does not depend on the sum, so each element adds only one
        # addition to the sum's dependency chain.
        filled = min(max(window, begin), end)
        for i in range(begin, filled):
            total += _squared(signal, i)
            out[i] = total * scale
        if filled == begin:
            total += _squared(signal, begin)
            out[begin] = total * scale
            filled += 1
        for i in range(filled, end):
            total += _squared(signal, i) - _squared(signal, i - window)
            out[i] = total * scale


@njit(nogil=True)
def loud_part(power: np.ndarray, threshold: np.float32) -> tuple[int, int]:
    """Return the positions of the first and the last element that reach the threshold; the first is greater than the last if none does."""
    first, last = 0, power.size - 1
    while first < power.size and not power[first] >= threshold:
        first += 1
    while last > first and not power[last] >= threshold:
        last -= 1
    return first, last


TAPS_AT_A_TIME = 8
"""The number of filter taps that are processed at a time."""


def sinc_table(lobes: int) -> np.ndarray:
    """Return a sinc function with ``lobes`` lobes on each side under a Hann window, 32 entries per lobe."""
    count = lobes * 64 + 1
    center = np.float32((count - 1) * 0.5)
    offsets = np.arange(count, dtype=np.float32) - center
    x = offsets * np.float32(2 * lobes / (count - 1))
    envelope = 0.5 * (1 + np.cos(np.pi * offsets * np.float32(2 / count)))
    table = np.zeros(count + 5, np.float32)
    table[1 : count + 1] = np.sinc(x) * envelope
    return table


def sinc_phases(table: np.ndarray, lobes: int) -> np.ndarray:
    """Return the entries of :func:`sinc_table` in the order in which :func:`resample` reads them.

    Row p holds entries p, p + 32, p + 64 and so on, then zeros; row 32 is row 0 from its second entry on.
    """
    stride = 2 * lobes + 2 + TAPS_AT_A_TIME
    padded = np.zeros(33 + 32 * stride, np.float32)
    padded[: table.size] = table
    return np.stack([padded[phase : phase + 32 * stride : 32] for phase in range(33)])


# The number of outputs whose positions are computed from one exact position, and the number of outputs that are summed at a time.
_BLOCK, _ABREAST = 256, 8
# The maximum number of weights that are cached for later blocks.
_MAX_WEIGHTS = 1 << 16
# An upper bound, in samples, of the error of the product of a position and a rounded ratio.
_ROUNDING_ERROR = 1e-9
# The number of entries in a filter's table per input sample.
_PER_SAMPLE = np.float32(32)


@inner
def _weights_at(
    flat: np.ndarray, stride: int, steps: np.ndarray, k: int, x: np.float32, center: np.float32, entry: int
) -> Vector:
    """Return the weights of an output's taps from ``k`` on, interpolated between entries of the table.

    Args:
        flat: the rows of :func:`sinc_phases`, of ``stride`` entries.
        steps: the numbers 0, 1, 2 and so on; float32.
        x: the position of the first tap relative to the output, in samples.
        center: the position of the sinc's centre in the table.
        entry: the number of the table's entry at the first tap, rounded down.
    """
    # The table positions of an output's taps are 32 entries apart: they are in one row and the next.
    low, step = (entry & 31) * stride + (entry >> 5) + k, load(steps, k, TAPS_AT_A_TIME)
    rest = ((step + x) * _PER_SAMPLE + center) - (step * _PER_SAMPLE + np.float32(entry))
    before, behind = load(flat, low, TAPS_AT_A_TIME), load(flat, low + stride, TAPS_AT_A_TIME)
    return before + rest * (behind - before)


@inner
def _fill_weights(
    position: np.float32,
    scale: float,
    count: int,
    lobes: int,
    phases: np.ndarray,
    steps: np.ndarray,
    firsts: np.ndarray,
    out: np.ndarray,
) -> None:
    """Compute the filters of some outputs, and the first sample that each reads.

    Args:
        position: the position of the first output.
        scale, lobes, phases: as for :func:`resample`.
        count: the number of outputs.
        steps: the numbers 0, 1, 2 and so on; float32.
        firsts: filled with each output's first sample; int64 of shape (outputs,).
        out: filled with the weights; float32 of shape (outputs * taps,).
    """
    center = np.float32(lobes * 32 + 1)
    flat, stride, taps = phases.ravel(), phases.shape[1], out.size // firsts.size
    for i in range(count):
        first = math.ceil(position) - lobes
        x = np.float32(first) - position
        entry = math.floor(x * _PER_SAMPLE + center)
        for k in range(0, taps, TAPS_AT_A_TIME):
            store(out, i * taps + k, _weights_at(flat, stride, steps, k, x, center, entry))
        firsts[i] = first
        position += np.float32(scale)


@inner
def _filter_one(signal: np.ndarray, place: int, weights: np.ndarray, begin: int, taps: int) -> np.float32:
    products = zeros(TAPS_AT_A_TIME)
    for k in range(0, taps, TAPS_AT_A_TIME):
        products = products + load(signal, place + k, TAPS_AT_A_TIME) * load(weights, begin + k, TAPS_AT_A_TIME)
    return total(products)


@inner
def _filter_eight(
    signal: np.ndarray, places: np.ndarray, begin: int, weights: np.ndarray, taps: int, line: np.ndarray
) -> None:
    """Compute eight adjacent outputs: eight sums side by side, each in the order of :func:`_filter_one`."""
    p0, p1, p2, p3 = at(places, begin), at(places, begin + 1), at(places, begin + 2), at(places, begin + 3)
    p4, p5, p6, p7 = at(places, begin + 4), at(places, begin + 5), at(places, begin + 6), at(places, begin + 7)
    a = b = c = d = e = f = g = h = zeros(TAPS_AT_A_TIME)
    for k in range(0, taps, TAPS_AT_A_TIME):
        w = begin * taps + k
        a = a + load(signal, p0 + k, TAPS_AT_A_TIME) * load(weights, w, TAPS_AT_A_TIME)
        b = b + load(signal, p1 + k, TAPS_AT_A_TIME) * load(weights, w + taps, TAPS_AT_A_TIME)
        c = c + load(signal, p2 + k, TAPS_AT_A_TIME) * load(weights, w + 2 * taps, TAPS_AT_A_TIME)
        d = d + load(signal, p3 + k, TAPS_AT_A_TIME) * load(weights, w + 3 * taps, TAPS_AT_A_TIME)
        e = e + load(signal, p4 + k, TAPS_AT_A_TIME) * load(weights, w + 4 * taps, TAPS_AT_A_TIME)
        f = f + load(signal, p5 + k, TAPS_AT_A_TIME) * load(weights, w + 5 * taps, TAPS_AT_A_TIME)
        g = g + load(signal, p6 + k, TAPS_AT_A_TIME) * load(weights, w + 6 * taps, TAPS_AT_A_TIME)
        h = h + load(signal, p7 + k, TAPS_AT_A_TIME) * load(weights, w + 7 * taps, TAPS_AT_A_TIME)
    a, b, c, d, e, f, g, h = transposed((a, b, c, d, e, f, g, h))
    store(line, begin, ((a + e) + (c + g)) + ((b + f) + (d + h)))


@inner
def _repeats(scale: float, blocks: int) -> bool:
    """Return whether one of the next blocks begins exactly at an input sample, as the first one does, so that filters repeat."""
    for number in range(1, blocks + 1):
        position = number * _BLOCK * scale
        if abs(position - np.rint(position)) < _ROUNDING_ERROR:
            return True
    return False


@inner
def _resample_once(
    padded: np.ndarray, silence: float, scale: float, lobes: int, phases: np.ndarray, steps: np.ndarray, out: np.ndarray
) -> None:
    """Same as :func:`_resample`, for ratios at which no filter can be reused."""
    center = np.float32(lobes * 32 + 1)
    taps = (2 * lobes + TAPS_AT_A_TIME - 1) // TAPS_AT_A_TIME * TAPS_AT_A_TIME
    flat, stride = phases.ravel(), phases.shape[1]
    for channel in range(padded.shape[0]):
        signal = padded[channel]
        for begin in range(0, out.shape[0], _BLOCK):
            block_position = begin * scale
            base = math.floor(block_position)
            position = np.float32(block_position - base)
            for i in range(begin, min(begin + _BLOCK, out.shape[0])):
                first = math.ceil(position) - lobes
                x = np.float32(first) - position
                entry = math.floor(x * _PER_SAMPLE + center)
                place = min(max(base + first + silence, 0), signal.size - taps)
                products = zeros(TAPS_AT_A_TIME)
                for k in range(0, taps, TAPS_AT_A_TIME):
                    weights = _weights_at(flat, stride, steps, k, x, center, entry)
                    products = products + load(signal, place + k, TAPS_AT_A_TIME) * weights
                out[i, channel] = total(products)
                position += np.float32(scale)


@njit(nogil=True)
def _resample(
    padded: np.ndarray, silence: float, scale: float, lobes: int, phases: np.ndarray, steps: np.ndarray, out: np.ndarray
) -> None:
    taps = (2 * lobes + TAPS_AT_A_TIME - 1) // TAPS_AT_A_TIME * TAPS_AT_A_TIME
    known = max(_MAX_WEIGHTS // (_BLOCK * taps), 1)
    if not _repeats(scale, known):
        _resample_once(padded, silence, scale, lobes, phases, steps, out)
        return
    weights, firsts = np.empty((known, _BLOCK * taps), np.float32), np.empty((known, _BLOCK), np.int64)
    positions, oldest = np.full(known, np.float32(-1)), 0
    places, line = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.float32)
    for begin in range(0, out.shape[0], _BLOCK):
        count = min(_BLOCK, out.shape[0] - begin)
        block_position = begin * scale
        base = math.floor(block_position)
        position, own = np.float32(block_position - base), 0
        while own < known and positions[own] != position:
            own += 1
        if own == known:
            own, oldest = oldest, (oldest + 1) % known
            _fill_weights(position, scale, count, lobes, phases, steps, firsts[own], weights[own])
            positions[own] = position
        for i in range(count):
            places[i] = min(max(base + firsts[own, i] + silence, 0), padded.shape[1] - taps)
        filters = weights[own]
        for channel in range(padded.shape[0]):
            signal, done = padded[channel], 0
            while done + _ABREAST <= count:
                _filter_eight(signal, places, done, filters, taps, line)
                done += _ABREAST
            for i in range(done, count):
                line[i] = _filter_one(signal, places[i], filters, i * taps, taps)
            for i in range(count):
                out[begin + i, channel] = line[i]


def resample(source: np.ndarray, scale: float, lobes: int, phases: np.ndarray, out: np.ndarray) -> None:
    """Resample (time, channels), float32: output ``i`` is at input position ``i * scale``; zeros outside.

    The zeros of the sinc are one input sample apart, even if the output has fewer samples.

    Args:
        source: float32 values.
        scale: input samples per output sample.
        lobes: the number of lobes on each side.
        phases: from :func:`sinc_phases`, for the same number of lobes.
        out: float32 with the same number of channels.
    """
    count, channels = source.shape
    silence = lobes + 1
    end = max(count, math.ceil(len(out) * scale)) + lobes + 2 * TAPS_AT_A_TIME
    padded = np.zeros((channels, silence + end), np.float32)
    padded[:, silence : silence + count] = source.T
    _resample(padded, silence, scale, lobes, phases, np.arange(2 * lobes + TAPS_AT_A_TIME, dtype=np.float32), out)
