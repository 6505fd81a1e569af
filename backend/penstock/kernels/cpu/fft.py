"""Power spectra of many frames at once: a Fourier transform whose vectors hold the same element of 8 frames.

That needs no shuffling of lanes, whatever the transform's size, and for usual sizes all intermediate results stay in the
first-level cache. For sizes that are powers of two.

Source: Stockham's self-sorting transform, radix 4, of half the size: a real frame's even and odd elements are taken
for real and imaginary parts, and the two spectra are told apart by their symmetry (Cooley, Lewis and Welch, 1970).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from penstock.kernels.cpu.audio import COLUMNS, reflected, sum_rows, used_widths
from penstock.kernels.cpu.simd import add_product, at, load, spread, store, subtract_product, transposed, zeros

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
_LANES = 8


@cache
def _roots_of_unity(count: int) -> np.ndarray:
    """``exp(-2 pi i k / count)`` as float32: the real parts, and in a second row the imaginary ones."""
    angles = -2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


@cache
def _places(count: int) -> np.ndarray:
    """Where the in-place transform of half as many complex numbers leaves each frequency, and last the first one again."""
    size = count // 2
    rest, order = np.arange(size), np.zeros(size, np.int64)
    while size > 1:
        # Each step puts together the frequencies of equal remainders.
        radix = 4 if size >= 4 else 2
        size //= radix
        order, rest = order + rest % radix * size, rest // radix
    return np.append(order, 0) * _LANES


@njit(**_OPTIONS)
def _copy_frames(signal, length, step, first, count, reflect, size, out):  # type: ignore[no-untyped-def]
    """``count`` frames, the first from ``first`` on, one every ``size`` elements of ``out``; zeros between them."""
    for i in range(out.size):
        out[i] = 0
    for lane in range(count):
        begin, place = first + lane * step, lane * size
        if begin >= 0 and begin + length <= signal.size:
            for k in range(length):
                out[place + k] = signal[begin + k]
            continue
        for k in range(length):
            index = begin + k
            if 0 <= index < signal.size:
                out[place + k] = signal[index]
            elif reflect:
                out[place + k] = signal[reflected(index, signal.size)]


@njit(**_OPTIONS)
def _gather(source, first, step, window, re, im):  # type: ignore[no-untyped-def]
    """Windowed frames, side by side: their even elements in ``re``, the odd ones in ``im``; zeros behind them.

    Frame ``i`` begins at ``source[first + i * step]``; nothing past the window is read. Windows have 8 elements at least.
    """
    for i in range(window.size // 2 * _LANES, re.size, _LANES):
        store(re, i, zeros(_LANES))
        store(im, i, zeros(_LANES))
    k = 0
    while k < window.size:
        # The last block overlaps the one before it rather than to be shorter.
        k = min(k, window.size - _LANES)
        i, factor = first + k, load(window, k, _LANES)
        rows = (
            load(source, i, _LANES) * factor,
            load(source, i + step, _LANES) * factor,
            load(source, i + 2 * step, _LANES) * factor,
            load(source, i + 3 * step, _LANES) * factor,
            load(source, i + 4 * step, _LANES) * factor,
            load(source, i + 5 * step, _LANES) * factor,
            load(source, i + 6 * step, _LANES) * factor,
            load(source, i + 7 * step, _LANES) * factor,
        )
        a, b, c, d, e, f, g, h = transposed(rows)
        place = (k >> 1) * _LANES
        if k & 1:
            # Only the last block of a window of odd length.
            store(im, place, a)
            store(im, place + _LANES, c)
            store(im, place + 2 * _LANES, e)
            store(im, place + 3 * _LANES, g)
            store(re, place + _LANES, b)
            store(re, place + 2 * _LANES, d)
            store(re, place + 3 * _LANES, f)
            store(re, place + 4 * _LANES, h)
        else:
            store(re, place, a)
            store(re, place + _LANES, c)
            store(re, place + 2 * _LANES, e)
            store(re, place + 3 * _LANES, g)
            store(im, place, b)
            store(im, place + _LANES, d)
            store(im, place + 2 * _LANES, f)
            store(im, place + 3 * _LANES, h)
        k += _LANES


@njit(**_OPTIONS)
def _transform(re, im, roots):  # type: ignore[no-untyped-def]
    """The transform of the complex numbers, in place; its elements end up in the order of :func:`_places`."""
    wr, wi = roots[0], roots[1]
    total = roots.shape[1]
    size = re.size
    stride = size
    n = size // _LANES
    while n >= 4:
        quarter = stride // 4
        turn = total // n
        for p in range(n // 4):
            w1r, w1i = spread(at(wr, p * turn), _LANES), spread(at(wi, p * turn), _LANES)
            w2r, w2i = spread(at(wr, 2 * p * turn), _LANES), spread(at(wi, 2 * p * turn), _LANES)
            w3r, w3i = spread(at(wr, 3 * p * turn), _LANES), spread(at(wi, 3 * p * turn), _LANES)
            for a in range(p * _LANES, size, stride):
                b, c, d = a + quarter, a + 2 * quarter, a + 3 * quarter
                ar, ai, br, bi = load(re, a, _LANES), load(im, a, _LANES), load(re, b, _LANES), load(im, b, _LANES)
                cr, ci, dr, di = load(re, c, _LANES), load(im, c, _LANES), load(re, d, _LANES), load(im, d, _LANES)
                pr, pi, mr, mi = ar + cr, ai + ci, ar - cr, ai - ci
                sr, si, tr, ti = br + dr, bi + di, br - dr, bi - di
                store(re, a, pr + sr)
                store(im, a, pi + si)
                er, ei, fr, fi, gr, gi = mr + ti, mi - tr, pr - sr, pi - si, mr - ti, mi + tr
                if p == 0:
                    store(re, b, er)
                    store(im, b, ei)
                    store(re, c, fr)
                    store(im, c, fi)
                    store(re, d, gr)
                    store(im, d, gi)
                else:
                    store(re, b, subtract_product(er * w1r, ei, w1i))
                    store(im, b, add_product(er * w1i, ei, w1r))
                    store(re, c, subtract_product(fr * w2r, fi, w2i))
                    store(im, c, add_product(fr * w2i, fi, w2r))
                    store(re, d, subtract_product(gr * w3r, gi, w3i))
                    store(im, d, add_product(gr * w3i, gi, w3r))
        stride = quarter
        n //= 4
    if n == 2:
        for a in range(0, size, 2 * _LANES):
            b = a + _LANES
            ar, ai, br, bi = load(re, a, _LANES), load(im, a, _LANES), load(re, b, _LANES), load(im, b, _LANES)
            store(re, a, ar + br)
            store(im, a, ai + bi)
            store(re, b, ar - br)
            store(im, b, ai - bi)


@njit(**_OPTIONS)
def _power(zr, zi, order, roots, column, out):  # type: ignore[no-untyped-def]
    """The squared magnitudes of the real frames' spectra, times 4, from the transform of half the size.

    That of frequency ``k`` goes to row ``k`` of ``out``, from ``column`` on.
    """
    wr, wi = roots[0], roots[1]
    half = order.size - 1
    for k in range(half // 2 + 1):
        # Of the frequencies k and n - k: what the even elements and the odd ones give is the same but for signs.
        i, j = at(order, k), at(order, half - k)
        ar, ai, br, bi = load(zr, i, _LANES), load(zi, i, _LANES), load(zr, j, _LANES), load(zi, j, _LANES)
        even_r, even_i = ar + br, ai - bi
        odd_r, odd_i = ai + bi, br - ar
        cos, sin = at(wr, k), at(wi, k)
        turned_r = subtract_product(odd_r * cos, sin, odd_i)
        turned_i = add_product(odd_r * sin, cos, odd_i)
        re, im = even_r + turned_r, even_i + turned_i
        store(out, k * COLUMNS + column, add_product(re * re, im, im))
        re, im = even_r - turned_r, even_i - turned_i
        store(out, (half - k) * COLUMNS + column, add_product(re * re, im, im))


@njit(**_OPTIONS)
def _spectra(signal, window, length, step, first, count, reflect, magnitude, roots, order, room, out):  # type: ignore[no-untyped-def]
    """The spectra of ``count`` frames side by side, the first of which begins at ``first``; there is place for 32."""
    re, im, frames = room
    for column in range(0, count, _LANES):
        abreast, begin = min(_LANES, count - column), first + column * step
        if length == window.size and begin >= 0 and begin + (_LANES - 1) * step + length <= signal.size:
            _gather(signal, begin, step, window, re, im)
        else:
            _copy_frames(signal, length, step, begin, abreast, reflect, window.size, frames)
            _gather(frames, 0, window.size, window, re, im)
        _transform(re, im, roots)
        _power(re, im, order, roots, column, out)
    if magnitude:
        for i in range(out.size):
            out[i] = np.sqrt(out[i])


@njit(**_OPTIONS)
def _room(half, window):  # type: ignore[no-untyped-def]
    """Real parts, imaginary ones, and copies of frames."""
    size = half * _LANES
    return np.empty(size, np.float32), np.empty(size, np.float32), np.empty(window.size * _LANES, np.float32)


@njit(**_OPTIONS)
def _store_rows(block, rows, first, frames, out):  # type: ignore[no-untyped-def]
    """``out[k, first + column] = block[k, column]``, where there are ``frames`` of them."""
    if first + COLUMNS <= frames:
        for k in range(rows):
            store(out, k * frames + first, load(block, k * COLUMNS, COLUMNS))
        return
    for k in range(rows):
        for column in range(frames - first):
            out[k * frames + first + column] = block[k * COLUMNS + column]


@njit(**_OPTIONS)
def _store_columns(block, rows, first, frames, out):  # type: ignore[no-untyped-def]
    """``out[first + column, k] = block[k, column]``, where there are ``frames`` of them."""
    count = min(COLUMNS, frames - first)
    whole = count // _LANES * _LANES if rows >= _LANES else 0
    for column in range(0, whole, _LANES):
        for begin in range(0, rows, _LANES):
            # The last block overlaps the one before it rather than to be shorter.
            k = min(begin, rows - _LANES)
            i, o = k * COLUMNS + column, (first + column) * rows + k
            lines = (
                load(block, i, _LANES),
                load(block, i + COLUMNS, _LANES),
                load(block, i + 2 * COLUMNS, _LANES),
                load(block, i + 3 * COLUMNS, _LANES),
                load(block, i + 4 * COLUMNS, _LANES),
                load(block, i + 5 * COLUMNS, _LANES),
                load(block, i + 6 * COLUMNS, _LANES),
                load(block, i + 7 * COLUMNS, _LANES),
            )
            a, b, c, d, e, f, g, h = transposed(lines)
            store(out, o, a)
            store(out, o + rows, b)
            store(out, o + 2 * rows, c)
            store(out, o + 3 * rows, d)
            store(out, o + 4 * rows, e)
            store(out, o + 5 * rows, f)
            store(out, o + 6 * rows, g)
            store(out, o + 7 * rows, h)
    for column in range(whole, count):
        for k in range(rows):
            out[(first + column) * rows + k] = block[k * COLUMNS + column]


@njit(**_OPTIONS)
def _power_spectra(signal, window, length, step, start, reflect, magnitude, roots, order, frames, time_first, out):  # type: ignore[no-untyped-def]
    bins = order.size
    room, block = _room(bins - 1, window), np.empty(bins * COLUMNS, np.float32)
    for t in range(0, frames, COLUMNS):
        count = min(COLUMNS, frames - t)
        _spectra(signal, window, length, step, start + t * step, count, reflect, magnitude, roots, order, room, block)
        if time_first:
            _store_columns(block, bins, t, frames, out)
        else:
            _store_rows(block, bins, t, frames, out)


@njit(**_OPTIONS)
def _band_power(signal, window, length, step, start, reflect, magnitude, roots, order, starts, weights, frames, out):  # type: ignore[no-untyped-def]
    bins, bands = order.size, starts.size
    widths = used_widths(bands, weights)
    room, block = _room(bins - 1, window), np.empty(bins * COLUMNS, np.float32)
    sums = np.empty(bands * COLUMNS, np.float32)
    for t in range(0, frames, COLUMNS):
        count = min(COLUMNS, frames - t)
        _spectra(signal, window, length, step, start + t * step, count, reflect, magnitude, roots, order, room, block)
        sum_rows(block, COLUMNS, starts, widths, weights, sums)
        _store_rows(sums, bands, t, frames, out)


class Transform(NamedTuple):
    """Short-time Fourier transforms of one kind; see :func:`framed`.

    Attributes:
        window: half of it, and zeros up to 8 elements.
        length: of the window.
        step: from one frame to the next.
        start: of the first frame.
        reflect: past its ends the signal is reflected; else there is silence.
        magnitude: the spectra's magnitude, not its square.
        roots: of unity.
        order: see :func:`_places`.
    """

    window: np.ndarray
    length: int
    step: int
    start: int
    reflect: bool
    magnitude: bool
    roots: np.ndarray
    order: np.ndarray


def framed(window: np.ndarray, step: int, start: int, nfft: int, *, reflect: bool, magnitude: bool) -> Transform:
    """Transforms of ``nfft`` elements, a power of two that is at least 8, of frames of as many elements as the window.

    Args:
        window: float32.
        step: from one frame to the next.
        start: of the first frame.
        nfft: not below the window's size.
        reflect: past its ends the signal is reflected; else there is silence.
        magnitude: the spectra's magnitude, not its square.
    """
    halved = np.zeros(max(len(window), _LANES), np.float32)
    np.multiply(window, np.float32(0.5), out=halved[: len(window)])
    return Transform(halved, len(window), step, start, reflect, magnitude, _roots_of_unity(nfft), _places(nfft))


def power_spectra(signal: np.ndarray, transform: Transform, time_first: bool, out: np.ndarray) -> None:
    """The power (or the magnitude) spectra of overlapping, windowed frames of a float32 signal.

    ``out`` is contiguous; of frequency ``f`` in frame ``t`` is its element (f, t), or (t, f) with ``time_first``.
    """
    frames = out.shape[0 if time_first else 1]
    _power_spectra(signal, *transform, frames, time_first, out.reshape(-1))


def band_power(
    signal: np.ndarray, transform: Transform, starts: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """The same as :func:`power_spectra` with :func:`penstock.kernels.cpu.audio.weighted_rows` behind it."""
    _band_power(signal, *transform, starts, weights.reshape(-1), out.shape[1], out.reshape(-1))
