"""Power spectra of many frames at once: a Fourier transform in which a vector holds the same element of 8 frames.

So no lanes are shuffled, whatever the size of the transform, and for usual sizes all intermediate results stay in the L1
cache. Sizes must be multiples of 8 without prime factors other than 2 and 5 (:func:`is_transformed`).

Source: Stockham's self-sorting transform, mostly of radix 4, of half the size: the even elements of a real frame become real parts,
the odd ones imaginary parts, and the symmetry of their spectra separates them afterwards (Cooley, Lewis and Welch, 1970).
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.audio import reflected, used_widths
from penstock.kernels.cpu.code_generation import Vector
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import (
    add_product,
    at,
    load,
    spread,
    store,
    subtract_product,
    transposed,
    zeros,
)

_LANES = 8
# The number of floats in a vector of complex numbers: the real parts, then the imaginary parts.
_ROW = 2 * _LANES
# The bits of all powers of 4. A size that is one of them needs only steps of radix 4.
_POWERS_OF_4 = 0x5555555555555555
# Cosines and sines of one fifth and of two fifths of a turn.
_COS_1, _COS_2, _SIN_1, _SIN_2 = (np.float32(f(k * 0.4 * np.pi)) for f in (np.cos, np.sin) for k in (1, 2))
# The number of frames whose spectra are buffered before they are stored.
TILE = 32


def _roots_of_unity(powers: np.ndarray, count: int) -> np.ndarray:
    """Return ``exp(-2 pi i powers / count)`` as flat float32: the real and the imaginary part of each element of ``powers``, in order."""
    angles = -2 * np.pi * powers / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32).reshape(-1)


@cache
def _radices(size: int) -> list[int]:
    """Return the radices of a transform of ``size`` complex numbers, a multiple of 4; the last one is always 4."""
    fives = 0
    while size % 5 == 0:
        size, fives = size // 5, fives + 1
    steps = size.bit_length() - 1
    return [2] * (steps % 2) + [5] * fives + [4] * (steps // 2)


def is_transformed(nfft: int) -> bool:
    """Return whether the kernels can transform this many elements."""
    return nfft >= _LANES and nfft % _LANES == 0 and math.prod(_radices(nfft // 2)) == nfft // 2


@cache
def _twiddles(size: int) -> np.ndarray:
    """Return the twiddle factors of all steps but the last: for each ``p``, the powers ``p``, ``2 p`` and so on of the step's root of
    unity.
    """
    parts = []
    for radix in _radices(size)[:-1]:
        parts.append(_roots_of_unity(np.outer(np.arange(size // radix), np.arange(1, radix)), size))
        size //= radix
    return np.concatenate([*parts, np.zeros(0, np.float32)])


@cache
def _split_twiddles(size: int) -> np.ndarray:
    """Return the twiddle factors for the odd elements' spectra: for each ``j``, those of the four frequencies ``j + m * size / 4``."""
    quarter = size // 4
    return _roots_of_unity(np.arange(quarter // 2 + 1)[:, None] + np.arange(4) * quarter, 2 * size)


@cache
def _places(size: int) -> np.ndarray:
    """Return, for each ``j``, the position from which the last step reads the inputs of the frequencies ``j``, ``j + size / 4`` and so
    on.
    """
    order, rest, left = np.zeros(size // 4, np.int64), np.arange(size // 4), size
    for radix in _radices(size)[:-1]:
        # A step separates frequencies by their remainder modulo its radix.
        left //= radix
        order, rest = order + rest % radix * left, rest // radix
    return order * _ROW


_FourVectors = tuple[Vector, Vector, Vector, Vector]
# Twiddle factors of the steps, the positions that the last step reads, and twiddle factors for the odd elements' spectra.
_Factors = tuple[np.ndarray, np.ndarray, np.ndarray]
# Scratch memory for the complex numbers of 8 frames, and for copies of the frames.
_Scratch = tuple[np.ndarray, np.ndarray]
TileScratch = tuple[_Scratch, np.ndarray]
# The fields of a `Transform`.
TransformFields = tuple[np.ndarray, int, int, int, bool, bool, _Factors]
# Where each band starts, its width, and all weights.
_Bands = tuple[np.ndarray, np.ndarray, np.ndarray]


@inner
def _copy_frames(
    signal: np.ndarray, length: int, step: int, first: int, count: int, reflect: bool, size: int, out: np.ndarray
) -> None:
    """Copy ``count`` frames from frame ``first`` on, each to the next ``size`` elements of ``out``, where zeros follow the frame."""
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


@inner
def _gather(source: np.ndarray, first: int, step: int, window: np.ndarray, work: np.ndarray) -> None:
    """Multiply 8 frames by the window, and write them side by side: even elements as real parts, odd ones as imaginary parts; then zeros.

    Frame ``i`` begins at ``source[first + i * step]``; nothing past the window is read. Windows have at least 8
    elements.
    """
    for i in range(window.size * _LANES, work.size, _LANES):
        store(work, i, zeros(_LANES))
    k = 0
    while k < window.size:
        # The last block overlaps the previous one, so that all blocks have the same size.
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
        place = k * _LANES
        store(work, place, a)
        store(work, place + _LANES, b)
        store(work, place + 2 * _LANES, c)
        store(work, place + 3 * _LANES, d)
        store(work, place + 4 * _LANES, e)
        store(work, place + 5 * _LANES, f)
        store(work, place + 6 * _LANES, g)
        store(work, place + 7 * _LANES, h)
        k += _LANES


@inner
def _halve(work: np.ndarray, twiddles: np.ndarray) -> None:
    """Do the step of radix 2."""
    half = work.size // 2
    for a in range(0, half, _ROW):
        b, p = a + half, a // _LANES
        wr, wi = at(twiddles, p), at(twiddles, p + 1)
        ar, ai = load(work, a, _LANES), load(work, a + _LANES, _LANES)
        br, bi = load(work, b, _LANES), load(work, b + _LANES, _LANES)
        store(work, a, ar + br)
        store(work, a + _LANES, ai + bi)
        dr, di = ar - br, ai - bi
        store(work, b, subtract_product(dr * wr, wi, di))
        store(work, b + _LANES, add_product(dr * wi, wr, di))


@inner
def _quarter(work: np.ndarray, stride: int, twiddles: np.ndarray, t: int) -> int:
    """Do a step of radix 4 of transforms of ``stride`` floats each, with the twiddle factors from position ``t`` on; return the position
    after them.
    """
    quarter = stride // 4
    for p in range(0, quarter, _ROW):
        w1r, w1i = spread(at(twiddles, t), _LANES), spread(at(twiddles, t + 1), _LANES)
        w2r, w2i = spread(at(twiddles, t + 2), _LANES), spread(at(twiddles, t + 3), _LANES)
        w3r, w3i = spread(at(twiddles, t + 4), _LANES), spread(at(twiddles, t + 5), _LANES)
        t += 6
        a = p
        # A `range` with a step would use a division to count its values.
        while a < work.size:
            b, c, d = a + quarter, a + 2 * quarter, a + 3 * quarter
            ar, ai = load(work, a, _LANES), load(work, a + _LANES, _LANES)
            br, bi = load(work, b, _LANES), load(work, b + _LANES, _LANES)
            cr, ci = load(work, c, _LANES), load(work, c + _LANES, _LANES)
            dr, di = load(work, d, _LANES), load(work, d + _LANES, _LANES)
            pr, pi, mr, mi = ar + cr, ai + ci, ar - cr, ai - ci
            sr, si, tr, ti = br + dr, bi + di, br - dr, bi - di
            store(work, a, pr + sr)
            store(work, a + _LANES, pi + si)
            er, ei, fr, fi, gr, gi = mr + ti, mi - tr, pr - sr, pi - si, mr - ti, mi + tr
            if p == 0:
                store(work, b, er)
                store(work, b + _LANES, ei)
                store(work, c, fr)
                store(work, c + _LANES, fi)
                store(work, d, gr)
                store(work, d + _LANES, gi)
            else:
                store(work, b, subtract_product(er * w1r, w1i, ei))
                store(work, b + _LANES, add_product(er * w1i, ei, w1r))
                store(work, c, subtract_product(fr * w2r, w2i, fi))
                store(work, c + _LANES, add_product(fr * w2i, fi, w2r))
                store(work, d, subtract_product(gr * w3r, w3i, gi))
                store(work, d + _LANES, add_product(gr * w3i, gi, w3r))
            a += stride
    return t


@inner
def _fifth(work: np.ndarray, stride: int, twiddles: np.ndarray, t: int) -> int:
    """Do a step of radix 5, as :func:`_quarter` does."""
    fifth = stride // 5
    for p in range(0, fifth, _ROW):
        a = p
        while a < work.size:
            b, c, d, e = a + fifth, a + 2 * fifth, a + 3 * fifth, a + 4 * fifth
            ar, ai = load(work, a, _LANES), load(work, a + _LANES, _LANES)
            br, bi = load(work, b, _LANES), load(work, b + _LANES, _LANES)
            cr, ci = load(work, c, _LANES), load(work, c + _LANES, _LANES)
            dr, di = load(work, d, _LANES), load(work, d + _LANES, _LANES)
            er, ei = load(work, e, _LANES), load(work, e + _LANES, _LANES)
            pr, pi, mr, mi = br + er, bi + ei, br - er, bi - ei
            sr, si, tr, ti = cr + dr, ci + di, cr - dr, ci - di
            store(work, a, ar + pr + sr)
            store(work, a + _LANES, ai + pi + si)
            fr = add_product(add_product(ar, _COS_1, pr), _COS_2, sr)
            fi = add_product(add_product(ai, _COS_1, pi), _COS_2, si)
            gr = add_product(mr * _SIN_1, _SIN_2, tr)
            gi = add_product(mi * _SIN_1, _SIN_2, ti)
            _store_turned(work, b, fr + gi, fi - gr, twiddles, t)
            _store_turned(work, e, fr - gi, fi + gr, twiddles, t + 6)
            fr = add_product(add_product(ar, _COS_2, pr), _COS_1, sr)
            fi = add_product(add_product(ai, _COS_2, pi), _COS_1, si)
            gr = subtract_product(mr * _SIN_2, _SIN_1, tr)
            gi = subtract_product(mi * _SIN_2, _SIN_1, ti)
            _store_turned(work, c, fr + gi, fi - gr, twiddles, t + 2)
            _store_turned(work, d, fr - gi, fi + gr, twiddles, t + 4)
            a += stride
        t += 8
    return t


@inner
def _store_turned(work: np.ndarray, place: int, re: Vector, im: Vector, twiddles: np.ndarray, t: int) -> None:
    """Store complex numbers multiplied by the twiddle factor at position ``t``."""
    wr, wi = at(twiddles, t), at(twiddles, t + 1)
    store(work, place, subtract_product(re * wr, wi, im))
    store(work, place + _LANES, add_product(re * wi, wr, im))


@inner
def _even_results(work: np.ndarray, a: int) -> _FourVectors:
    """Return results 0 and 2 of the last radix-4 step for the four complex numbers starting at ``a``."""
    b, c, d = a + _ROW, a + 2 * _ROW, a + 3 * _ROW
    pr, pi = (
        load(work, a, _LANES) + load(work, c, _LANES),
        load(work, a + _LANES, _LANES) + load(work, c + _LANES, _LANES),
    )
    sr, si = (
        load(work, b, _LANES) + load(work, d, _LANES),
        load(work, b + _LANES, _LANES) + load(work, d + _LANES, _LANES),
    )
    return pr + sr, pi + si, pr - sr, pi - si


@inner
def _odd_results(work: np.ndarray, a: int) -> _FourVectors:
    """Return results 1 and 3 of the same step as :func:`_even_results`."""
    b, c, d = a + _ROW, a + 2 * _ROW, a + 3 * _ROW
    mr, mi = (
        load(work, a, _LANES) - load(work, c, _LANES),
        load(work, a + _LANES, _LANES) - load(work, c + _LANES, _LANES),
    )
    tr, ti = (
        load(work, b, _LANES) - load(work, d, _LANES),
        load(work, b + _LANES, _LANES) - load(work, d + _LANES, _LANES),
    )
    return mr + ti, mi - tr, mr - ti, mi + tr


@kernel
def _part(
    ar: Vector,
    ai: Vector,
    br: Vector,
    bi: Vector,
    split_twiddles: np.ndarray,
    t: int,
    out: np.ndarray,
    columns: int,
    k: int,
    mirrored: int,
) -> None:
    """Compute four times the squared magnitudes of the frequencies ``k`` and ``mirrored`` of real frames.

    The terms of even and of odd elements differ only in sign between the two frequencies.
    """
    even_r, even_i = ar + br, ai - bi
    odd_r, odd_i = ai + bi, br - ar
    cos, sin = at(split_twiddles, t), at(split_twiddles, t + 1)
    turned_r = subtract_product(odd_r * cos, sin, odd_i)
    turned_i = add_product(odd_r * sin, cos, odd_i)
    re, im = even_r + turned_r, even_i + turned_i
    store(out, k * columns, add_product(re * re, im, im))
    re, im = even_r - turned_r, even_i - turned_i
    store(out, mirrored * columns, add_product(re * re, im, im))


@inner
def _power(work: np.ndarray, places: np.ndarray, split_twiddles: np.ndarray, out: np.ndarray, columns: int) -> None:
    """Do the last step of the transform, and compute the power of the real frames: frequency ``k`` in row ``k`` of
    ``out``.
    """
    quarter = places.size
    half, size = 2 * quarter, 4 * quarter
    a0r, a0i, a2r, a2i = _even_results(work, 0)
    _part(a0r, a0i, a0r, a0i, split_twiddles, 0, out, columns, 0, size)
    _part(a2r, a2i, a2r, a2i, split_twiddles, 4, out, columns, half, half)
    a1r, a1i, a3r, a3i = _odd_results(work, 0)
    _part(a1r, a1i, a3r, a3i, split_twiddles, 2, out, columns, quarter, size - quarter)
    for j in range(1, quarter // 2 + 1):
        k, t, a, b = quarter - j, j * 8, at(places, j), at(places, quarter - j)
        # Compute half of the results at a time: there are not enough registers for all.
        a0r, a0i, a2r, a2i = _even_results(work, a)
        b1r, b1i, b3r, b3i = _odd_results(work, b)
        _part(a0r, a0i, b3r, b3i, split_twiddles, t, out, columns, j, size - j)
        _part(a2r, a2i, b1r, b1i, split_twiddles, t + 4, out, columns, j + half, k + quarter)
        a1r, a1i, a3r, a3i = _odd_results(work, a)
        b0r, b0i, b2r, b2i = _even_results(work, b)
        _part(a1r, a1i, b2r, b2i, split_twiddles, t + 2, out, columns, j + quarter, k + half)
        _part(a3r, a3i, b0r, b0i, split_twiddles, t + 6, out, columns, size - k, k)


@inner
def _spectra(
    signal: np.ndarray,
    window: np.ndarray,
    length: int,
    step: int,
    first: int,
    count: int,
    reflect: bool,
    factors: _Factors,
    scratch: _Scratch,
    out: np.ndarray,
    columns: int,
) -> None:
    """Compute the power spectra of up to 8 frames side by side, starting with ``first``; ``columns`` is the stride of
    ``out``.
    """
    twiddles, places, split_twiddles = factors
    work, frames = scratch
    if length == window.size and first >= 0 and first + (_LANES - 1) * step + length <= signal.size:
        _gather(signal, first, step, window, work)
    else:
        _copy_frames(signal, length, step, first, count, reflect, window.size, frames)
        _gather(frames, 0, window.size, window, work)
    stride, t = work.size, 0
    # Divide the size by the factors of 5: what is left decides whether a step of radix 2 is needed.
    left = places.size
    while left % 5 == 0:
        left //= 5
    fives = places.size // left
    if left & _POWERS_OF_4 == 0:
        _halve(work, twiddles)
        stride //= 2
        t = stride // _LANES
    while fives > 1:
        t = _fifth(work, stride, twiddles, t)
        stride, fives = stride // 5, fives // 5
    while stride > 4 * _ROW:
        t = _quarter(work, stride, twiddles, t)
        stride //= 4
    _power(work, places, split_twiddles, out, columns)


@inner
def _scratch(size: int, window: np.ndarray) -> _Scratch:
    """Return scratch memory for ``size`` complex numbers of 8 frames, and for copies of the frames."""
    return np.empty(size * _ROW, np.float32), np.empty(window.size * _LANES, np.float32)


@inner
def _store_rows(block: np.ndarray, rows: int, first: int, frames: int, out: np.ndarray) -> None:
    """Set ``out[k, first + column] = block[k, column]``, for up to ``frames`` columns."""
    if first + TILE <= frames:
        for k in range(rows):
            store(out, k * frames + first, load(block, k * TILE, TILE))
        return
    for k in range(rows):
        for column in range(frames - first):
            out[k * frames + first + column] = block[k * TILE + column]


@inner
def _store_columns(block: np.ndarray, rows: int, first: int, frames: int, out: np.ndarray) -> None:
    """Set ``out[first + column, k] = block[k, column]``, for up to ``frames`` columns."""
    count = min(TILE, frames - first)
    whole = count // _LANES * _LANES if rows >= _LANES else 0
    for column in range(0, whole, _LANES):
        for begin in range(0, rows, _LANES):
            # The last block overlaps the previous one, so that all blocks have the same size.
            k = min(begin, rows - _LANES)
            i, o = k * TILE + column, (first + column) * rows + k
            lines = (
                load(block, i, _LANES),
                load(block, i + TILE, _LANES),
                load(block, i + 2 * TILE, _LANES),
                load(block, i + 3 * TILE, _LANES),
                load(block, i + 4 * TILE, _LANES),
                load(block, i + 5 * TILE, _LANES),
                load(block, i + 6 * TILE, _LANES),
                load(block, i + 7 * TILE, _LANES),
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
            out[(first + column) * rows + k] = block[k * TILE + column]


@inner
def _to_magnitudes(powers: np.ndarray) -> None:
    for i in range(powers.size):
        powers[i] = np.sqrt(powers[i])


@kernel
def _power_spectra(
    signal: np.ndarray,
    window: np.ndarray,
    length: int,
    step: int,
    start: int,
    reflect: bool,
    magnitude: bool,
    factors: _Factors,
    frames: int,
    time_first: bool,
    out: np.ndarray,
) -> None:
    bins = factors[1].size * 4 + 1
    scratch, block = _scratch(bins - 1, window), np.empty(bins * TILE, np.float32)
    for t in range(0, frames, TILE):
        for column in range(0, min(TILE, frames - t), _LANES):
            first, count = start + (t + column) * step, min(_LANES, frames - t - column)
            _spectra(signal, window, length, step, first, count, reflect, factors, scratch, block[column:], TILE)
        if magnitude:
            _to_magnitudes(block)
        if time_first:
            _store_columns(block, bins, t, frames, out)
        else:
            _store_rows(block, bins, t, frames, out)


@inner
def _sum_bands(
    powers: np.ndarray, starts: np.ndarray, widths: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """Compute :func:`penstock.kernels.cpu.audio.weighted_rows` of the spectra of 8 frames; rows of ``out`` have ``TILE`` elements."""
    width = weights.size // starts.size
    for m in range(starts.size):
        place, row = at(starts, m) * _LANES, m * width
        sums = zeros(_LANES)
        for k in range(at(widths, m)):
            sums = sums + load(powers, place + k * _LANES, _LANES) * at(weights, row + k)
        store(out, m * TILE, sums)


@inner
def band_tile(
    signal: np.ndarray,
    transform: TransformFields,
    bands: _Bands,
    t: int,
    count: int,
    scratch: TileScratch,
    sums: np.ndarray,
) -> None:
    """Compute the bands of up to ``TILE`` frames starting with frame ``t``: ``sums[m * TILE + column]``.

    Args:
        signal: float32.
        transform: the fields of a :class:`Transform`.
        bands: the first frequency of each band, the :func:`~penstock.kernels.cpu.audio.used_widths`, and the weights, flat.
        t, count: the first frame, and the number of frames.
        scratch: scratch memory from :func:`tile_scratch`.
        sums: filled; ``TILE`` elements for each band. Elements from ``count`` on are left unchanged or set to the bands of silence.
    """
    window, length, step, start, reflect, magnitude, factors = transform
    starts, widths, weights = bands
    spectra_scratch, powers = scratch
    for column in range(0, count, _LANES):
        first, abreast = start + (t + column) * step, min(_LANES, count - column)
        _spectra(signal, window, length, step, first, abreast, reflect, factors, spectra_scratch, powers, _LANES)
        if magnitude:
            _to_magnitudes(powers)
        # Sum the bands while the spectra are still in the L1 cache.
        _sum_bands(powers, starts, widths, weights, sums[column:])


@inner
def tile_scratch(transform: TransformFields) -> TileScratch:
    """Return the scratch memory of :func:`band_tile`."""
    window, factors = transform[0], transform[6]
    size = factors[1].size * 4
    return _scratch(size, window), np.empty((size + 1) * _LANES, np.float32)


@kernel
def _band_power(
    signal: np.ndarray,
    transform: TransformFields,
    starts: np.ndarray,
    weights: np.ndarray,
    frames: int,
    out: np.ndarray,
) -> None:
    bands = starts, used_widths(starts.size, weights), weights
    scratch, sums = tile_scratch(transform), np.empty(starts.size * TILE, np.float32)
    for t in range(0, frames, TILE):
        band_tile(signal, transform, bands, t, min(TILE, frames - t), scratch, sums)
        _store_rows(sums, starts.size, t, frames, out)


class Transform(NamedTuple):
    """The parameters of short-time Fourier transforms; see :func:`framed`.

    Attributes:
        window: multiplied by one half, and padded with zeros to at least 8 elements.
        length: the window's length.
        step: the distance from the start of a frame to that of the next.
        start: the position of the first frame's first sample.
        reflect: whether to pad the signal by reflection; otherwise, with zeros.
        magnitude: whether to return magnitudes rather than their squares.
        factors: twiddle factors of the steps, the positions that the last step reads, and twiddle factors for the odd elements' spectra.
    """

    window: np.ndarray
    length: int
    step: int
    start: int
    reflect: bool
    magnitude: bool
    factors: _Factors


def framed(window: np.ndarray, step: int, start: int, nfft: int, *, reflect: bool, magnitude: bool) -> Transform:
    """Return the transform of frames as long as the window; :func:`is_transformed` must accept the size ``nfft``.

    Args:
        window: float32.
        step: the distance from the start of a frame to that of the next.
        start: the position of the first frame's first sample.
        nfft: the size of the transform, at least the window's length.
        reflect: whether to pad the signal by reflection; otherwise, with zeros.
        magnitude: whether to return magnitudes rather than their squares.
    """
    halved = np.zeros(max(len(window), _LANES), np.float32)
    np.multiply(window, np.float32(0.5), out=halved[: len(window)])
    size = nfft // 2
    factors = _twiddles(size), _places(size), _split_twiddles(size)
    return Transform(halved, len(window), step, start, reflect, magnitude, factors)


def power_spectra(signal: np.ndarray, transform: Transform, time_first: bool, out: np.ndarray) -> None:
    """Compute the power (or magnitude) spectra of overlapping, windowed frames of a float32 signal.

    ``out`` is contiguous; frequency ``f`` of frame ``t`` is its element (f, t), or (t, f) with ``time_first``.
    """
    frames = out.shape[0 if time_first else 1]
    _power_spectra(signal, *transform, frames, time_first, out.reshape(-1))


def band_power(
    signal: np.ndarray, transform: Transform, starts: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """Compute :func:`power_spectra`, and then :func:`penstock.kernels.cpu.audio.weighted_rows` of them."""
    _band_power(signal, transform[:], starts, weights.reshape(-1), out.shape[1], out.reshape(-1))
