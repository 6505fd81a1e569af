"""Draws from the uniform, normal, gamma and beta distributions, and weighted choices, from random streams.

Gamma and beta numbers are drawn by rejection, as in the GNU C++ library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    intrinsic,
    types,
)
from penstock.kernels.cpu.options import inner, kernel, njit
from penstock.kernels.cpu.philox import (
    ELEMENT_STRIDE,
    ELEMENTS_AT_ONCE,
    TO_UNIT,
    Draws,
    draw64,
    draw_below,
    draw_of_element,
    draw_pair,
    draws_of,
    empty_words,
    fill_first_words,
    fill_pairs,
    next_canonical,
    unit,
)
from penstock.kernels.random_keys import Key


@intrinsic
def fma(_context: TypingContext, a: types.Float, _b: types.Float, _c: types.Float) -> Intrinsic:
    """Return ``a * b + c`` with a single rounding."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.fma(*args)

    return a(a, a, a), generate


@njit(nogil=True)
def fill_uniform(
    out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, low: np.float32, high: np.float32
) -> None:
    """Fill ``out`` with uniform numbers in [low, high), in single precision."""
    top = np.nextafter(high, low)
    base = min(low, top)
    scale = (max(low, top) - base) * TO_UNIT
    for e in range(out.size):
        out[e] = fma(np.float32(draw_of_element(key, stream, start, e)), scale, base)


@njit(nogil=True)
def fill_uniform_double(
    out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, low: float, high: float
) -> None:
    """Fill ``out`` with uniform numbers in [low, high), in double precision."""
    top = np.nextafter(high, low)
    base = min(low, top)
    scale = (max(low, top) - base) * 2.0**-64
    for e in range(out.size):
        bits = draw64(key, stream, start + np.uint64(ELEMENT_STRIDE * e))
        out[e] = fma(np.float64(bits), scale, base)


@njit(nogil=True)
def fill_rows(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, low: np.float32, high: np.float32
) -> None:
    """Run :func:`fill_uniform` for each row, with the row's stream of random numbers."""
    for row in range(len(out)):
        fill_uniform(out[row], key, streams[row], start, low, high)


@njit(nogil=True)
def fill_rows_double(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, low: float, high: float) -> None:
    """Run :func:`fill_uniform_double` for each row, with the row's stream of random numbers."""
    for row in range(len(out)):
        fill_uniform_double(out[row], key, streams[row], start, low, high)


@njit(nogil=True)
def normal(a: np.uint64, b: np.uint64) -> np.float32:
    """Return a standard normal number computed from two random draws: the cosine branch of the Box-Muller transform."""
    radius = math.sqrt(np.float32(-2) * math.log(unit(a)))
    return np.float32(radius) * np.float32(math.cos(np.float32(2 * math.pi) * unit(b)))


NORMALS_AT_ONCE = 1024
"""The number of values that :func:`fill_normals` computes at a time, in arrays that stay in the cache."""
# The bits of the float32 sqrt(1/2), and the number of bits of a float32's fraction.
_ROOT_BITS, _FRACTION_BITS = np.int32(0x3F3504F3), np.int32(23)


@inner
def _fill_logarithms(numbers: np.ndarray, out: np.ndarray) -> None:
    """Compute the logarithms of float32 numbers above 0, rounded from a series in double precision."""
    bits, rests = numbers.view(np.int32), out.view(np.int32)
    for e in range(out.size):
        # The number is 2 ** exponent times `rest`, which lies between sqrt(1/2) and sqrt(2).
        rests[e] = bits[e] - ((bits[e] - _ROOT_BITS) >> _FRACTION_BITS << _FRACTION_BITS)
    for e in range(out.size):
        exponent, rest = np.float64(np.int32((bits[e] - _ROOT_BITS) >> _FRACTION_BITS)), np.float64(out[e])
        s = (rest - 1.0) / (rest + 1.0)
        z = s * s
        series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13)))))
        out[e] = np.float32(exponent * math.log(2) + 2.0 * (s + s * z * series))


@njit(nogil=True)
def _fill_cosines(numbers: np.ndarray, out: np.ndarray) -> None:
    """Compute the cosines of float32 numbers from 0 to 7, rounded from series in double precision."""
    for e in range(out.size):
        number = np.float64(numbers[e])
        quarter = np.int32(number * (2 / math.pi) + 0.5)
        r = number - np.float64(quarter) * (math.pi / 2)
        z = r * r
        even = 1.0 - z * (
            1 / 2 - z * (1 / 24 - z * (1 / 720 - z * (1 / 40320 - z * (1 / 3628800 - z * (1 / 479001600)))))
        )
        odd = r - r * z * (1 / 6 - z * (1 / 120 - z * (1 / 5040 - z * (1 / 362880 - z * (1 / 39916800)))))
        # The angle is a number of quarter turns plus r; depending on that number, its cosine is cos r, -sin r, -cos r or sin r.
        value = odd if quarter & 1 else even
        out[e] = np.float32(-value if (quarter + 1) & 2 else value)


@njit(nogil=True)
def fill_normals(key: Key, stream: np.uint64, start: np.uint64, out: np.ndarray) -> None:
    """Compute :func:`normal` for up to ``NORMALS_AT_ONCE`` consecutive elements, in loops that are vectorized.

    Logarithms and cosines may be rounded differently from the C library's.
    """
    first, second = np.empty(out.size, np.uint32), np.empty(out.size, np.uint32)
    fill_pairs(key, stream, start, first, second)
    units, logarithms = np.empty(out.size, np.float32), np.empty(out.size, np.float32)
    angles, cosines = np.empty(out.size, np.float32), np.empty(out.size, np.float32)
    for e in range(out.size):
        units[e] = np.float32(first[e]) * TO_UNIT
        angles[e] = np.float32(2 * math.pi) * (np.float32(second[e]) * TO_UNIT)
    _fill_logarithms(units, logarithms)
    _fill_cosines(angles, cosines)
    for e in range(out.size):
        logarithm = logarithms[e] if first[e] else np.float32(-np.inf)
        out[e] = np.float32(math.sqrt(np.float32(-2) * logarithm)) * cosines[e]


@njit(nogil=True)
def normal_double(key: Key, stream: np.uint64, n: np.uint64) -> float:
    """Same as :func:`normal`, in double precision, from four random draws."""
    a = np.float64(draw64(key, stream, n)) * 2.0**-64
    b = np.float64(draw64(key, stream, n + np.uint64(2))) * 2.0**-64
    return math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b)


@njit(nogil=True)
def fill_normal(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, mean: np.float32, stddev: np.float32
) -> None:
    """Fill with normally distributed numbers, in single precision; each row has a random stream."""
    a, b = np.empty(NORMALS_AT_ONCE, np.uint32), np.empty(NORMALS_AT_ONCE, np.uint32)
    for row in range(len(out)):
        for begin in range(0, out.shape[1], NORMALS_AT_ONCE):
            numbers = out[row, begin : begin + NORMALS_AT_ONCE]
            first, second = a[: numbers.size], b[: numbers.size]
            fill_pairs(key, streams[row], start + np.uint64(ELEMENT_STRIDE * begin), first, second)
            for e in range(numbers.size):
                numbers[e] = fma(normal(first[e], second[e]), stddev, mean)


@njit(nogil=True)
def fill_normal_double(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, mean: float, stddev: float
) -> None:
    """Run :func:`fill_normal` in double precision."""
    for row in range(len(out)):
        numbers, stream = out[row], streams[row]
        for e in range(numbers.size):
            numbers[e] = fma(normal_double(key, stream, start + np.uint64(ELEMENT_STRIDE * e)), stddev, mean)


@njit(nogil=True)
def fill_below(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, bound: np.uint64, in_a_row: bool
) -> None:
    """Fill with unbiased integers in [0, bound); each row has a random stream.

    ``in_a_row``: elements use consecutive draws, without gaps.
    """
    for row in range(len(out)):
        numbers, stream, n = out[row], streams[row], start
        for e in range(numbers.size):
            if not in_a_row:
                n = start + np.uint64(ELEMENT_STRIDE * e)
            numbers[e], n = draw_below(key, stream, n, bound)


@njit(nogil=True)
def fill_weighted(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, cumulative: np.ndarray, in_a_row: bool
) -> None:
    """Fill with indices drawn with given probabilities; each row has a random stream.

    ``cumulative``: the cumulative sums of the probabilities; the last one is 1. ``in_a_row``: as for :func:`fill_below`.
    """
    stride = np.uint64(2 if in_a_row else ELEMENT_STRIDE)
    for row in range(len(out)):
        numbers, stream = out[row], streams[row]
        for e in range(numbers.size):
            a, b = draw_pair(key, stream, start + stride * np.uint64(e))
            u = (np.float64(a) + np.float64(b) * 2.0**32) / 2.0**64
            numbers[e] = np.searchsorted(cumulative, u)


@njit(nogil=True)
def like(value: float, real: float) -> float:
    """Return ``value`` in the precision of ``real``."""
    if isinstance(real, np.float32):
        return np.float32(value)
    return np.float64(value)


@inner
def polar_normal(draws: Draws, n: np.uint64, spare: float) -> tuple[float, np.uint64, float]:
    """Return a standard normal number by Marsaglia's polar method, the position after it, and the spare number for the next call.

    The method yields two numbers; without one to spare, ``spare`` is NaN.
    """
    if not math.isnan(spare):
        return spare, n, like(np.nan, spare)
    while True:
        x, n = next_canonical(draws, n, spare)
        y, n = next_canonical(draws, n, spare)
        x = like(2, spare) * x - like(1, spare)
        y = like(2, spare) * y - like(1, spare)
        square = x * x + y * y
        if 0 < square <= 1:
            break
    factor = like(math.sqrt(like(-2, spare) * like(math.log(square), spare) / square), spare)
    return y * factor, n, x * factor


@inner
def gamma_above_one(draws: Draws, n: np.uint64, spare: float, shape: float) -> tuple[float, float, np.uint64, float]:
    """Return two factors whose product has the gamma distribution of ``shape`` >= 1 and scale 1, the position after them, and the spare
    number of :func:`polar_normal`.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    """
    one = like(1, spare)
    d = shape - one / like(3, spare)
    c = one / like(math.sqrt(like(9, spare) * d), spare)
    while True:
        x, n, spare = polar_normal(draws, n, spare)
        v = one + c * x
        if v <= 0:
            continue
        v = v * v * v
        u, n = next_canonical(draws, n, spare)
        if u <= one - like(0.0331, spare) * x * x * x * x or math.log(u) <= 0.5 * x * x + d * (1 - v + math.log(v)):
            return d, v, n, spare


@inner
def gamma(draws: Draws, n: np.uint64, spare: float, shape: float) -> tuple[float, np.uint64, float]:
    """Return a number of the gamma distribution of ``shape`` and scale 1, the position after it, and the spare number of
    :func:`polar_normal`.
    """
    if shape >= 1:
        d, v, n, spare = gamma_above_one(draws, n, spare, shape)
        return d * v, n, spare
    d, v, n, spare = gamma_above_one(draws, n, spare, shape + like(1, spare))
    u, n = next_canonical(draws, n, spare)
    while u == 0:
        u, n = next_canonical(draws, n, spare)
    return like(u ** (like(1, spare) / shape), spare) * d * v, n, spare


@inner
def _fill_row_of_beta(
    out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, alpha: float, beta: float, real: float
) -> None:
    alpha, beta = like(alpha, real), like(beta, real)
    spare_a, spare_b, words = like(np.nan, real), like(np.nan, real), empty_words()
    for e in range(out.size):
        n = start + np.uint64(ELEMENT_STRIDE * e)
        if e % ELEMENTS_AT_ONCE == 0:
            fill_first_words(words, key, stream, n)
        draws = draws_of(words, e, key, stream, n)
        if alpha < 1 and beta < 1:
            # Both gamma numbers may underflow, so they are computed relative to the larger one.
            d_a, v_a, n, spare_a = gamma_above_one(draws, n, spare_a, alpha + like(1, real))
            d_b, v_b, n, spare_b = gamma_above_one(draws, n, spare_b, beta + like(1, real))
            u, n = next_canonical(draws, n, real)
            v, n = next_canonical(draws, n, real)
            a, b = d_a * v_a, d_b * v_b
            log_a = like(math.log(like(1, real) - u), real) * (beta / alpha)
            log_b = like(math.log(like(1, real) - v), real)
            ratio = like(math.exp(-abs(log_a - log_b) / beta), real)
            if log_a < log_b:
                a *= ratio
            else:
                b *= ratio
            out[e] = a / (a + b)
        else:
            a, n, spare_a = gamma(draws, n, spare_a, alpha)
            b, n, spare_b = gamma(draws, n, spare_b, beta)
            out[e] = a / (a + b)


@kernel
def fill_beta(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, alpha: float, beta: float) -> None:
    """Fill with numbers of the beta distribution, in the precision of ``out``; each row has its stream."""
    real = np.zeros(1, out.dtype)[0]
    for row in range(len(out)):
        _fill_row_of_beta(out[row], key, streams[row], start, alpha, beta, real)
