"""The random streams on the CPU: Philox4x32-10, and the distributions drawn from it.

A stream is identified by three 64-bit numbers ``(key, stream, start)`` and has no state: draw ``n`` is word ``n & 3``
of the block with counter ``n >> 2``, so any draw can be computed without the previous ones. Threads, samples and the
GPU can draw independently and still agree. Functions that consume a varying number of draws return the position after
the last.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11. The mapping from draws to numbers is
    DALI's, so
that both give the same values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit, types
from numba.extending import overload

from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    intrinsic,
)
from penstock.kernels.cpu.convert import converted
from penstock.kernels.random_keys import Key

ELEMENT_STRIDE = 257
"""Element ``e`` of an output starts at draw ``257 * e`` of its sample's stream."""

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
# The words of a block; a drawn number, with the position after it.
_Block = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_Drawn = tuple[np.uint64, np.uint64]
_TO_UNIT = np.float32(2.0**-32)


@intrinsic
def fma(_context: TypingContext, a: types.Float, _b: types.Float, _c: types.Float) -> Intrinsic:
    """``a * b + c`` with a single rounding."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.fma(*args)

    return a(a, a, a), generate


def _parts(key: Key) -> tuple[np.uint64, np.uint64]:
    """A key, and the block that positions count from. For use in kernels."""
    raise TypeError("for use inside of numba kernels")


# numba compares the signatures of overloads, annotations included, so this function has none.
@overload(_parts, inline="always")
def _parts_of(key):  # type: ignore[no-untyped-def]
    if isinstance(key, types.BaseTuple):
        return lambda key: (key[0], key[1])
    return lambda key: (key, np.uint64(0))


@njit(nogil=True, cache=True, inline="always")
def block(key: Key, stream: np.uint64, counter: np.uint64) -> _Block:
    """The four words of block ``counter``, as 64-bit integers."""
    key, base = _parts(key)
    counter += base
    k0, k1 = key & _LOW, key >> _32
    c0, c1 = counter & _LOW, counter >> _32
    c2, c3 = stream & _LOW, stream >> _32
    for _ in range(10):
        p0, p1 = _MULTIPLIER_0 * c0, _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@njit(nogil=True, cache=True)
def fill_blocks(out: np.ndarray, key: Key, stream: np.uint64, counter: np.uint64) -> None:
    """The words of consecutive blocks, 64-bit integers; after the last block of a stream comes the next stream."""
    for first in range(0, out.size, 4):
        out[first], out[first + 1], out[first + 2], out[first + 3] = block(key, stream, counter)
        counter += np.uint64(1)
        if counter == 0:
            stream += np.uint64(1)


@njit(nogil=True, cache=True)
def draw(key: Key, stream: np.uint64, n: np.uint64) -> np.uint64:
    """Draw ``n``: 32 random bits, in a 64-bit integer."""
    words = block(key, stream, n >> np.uint64(2))
    word = n & np.uint64(3)
    if word == 0:
        return words[0]
    if word == 1:
        return words[1]
    return words[2] if word == 2 else words[3]


@njit(nogil=True, cache=True)
def draw64(key: Key, stream: np.uint64, n: np.uint64) -> np.uint64:
    """Draws ``n`` (low) and ``n + 1`` (high) as one 64-bit number."""
    return draw(key, stream, n) | (draw(key, stream, n + np.uint64(1)) << _32)


@njit(nogil=True, cache=True)
def draw_below(key: Key, stream: np.uint64, n: np.uint64, bound: np.uint64) -> _Drawn:
    """An unbiased number in [0, bound), and the position after it."""
    one = np.uint64(1)
    if bound <= _LOW:
        return _draw_below_32_bits(key, stream, n, bound)
    if bound == _LOW + one:
        return draw(key, stream, n), n + one
    while True:
        high, n = _draw_below_32_bits(key, stream, n, ((bound - one) >> _32) + one)
        number = (high << _32) + draw(key, stream, n)
        n += one
        if number < bound:
            return number, n


@njit(nogil=True, cache=True)
def _draw_below_32_bits(key: Key, stream: np.uint64, n: np.uint64, bound: np.uint64) -> _Drawn:
    """An unbiased number in [0, bound) for bounds below 2**32 (Lemire's method), and the position after it."""
    one = np.uint64(1)
    product = draw(key, stream, n) * bound
    n += one
    if product & _LOW < bound:
        threshold = ((_LOW + one) - bound) % bound
        while product & _LOW < threshold:
            product = draw(key, stream, n) * bound
            n += one
    return product >> _32, n


@njit(nogil=True, cache=True)
def unit(bits: np.uint64) -> np.float32:
    """32 random bits as a number in [0, 1]."""
    return np.float32(bits) * _TO_UNIT


@njit(nogil=True, cache=True)
def fill_units(key: Key, stream: np.uint64, n: np.uint64, out: np.ndarray) -> None:
    """Fills a float32 array with numbers in [0, 1]; the first element's draw is ``n``.

    Words are selected without branches, so that the loop is vectorized.
    """
    one, two = np.uint64(1), np.uint64(2)
    for e in range(out.size):
        place = n + np.uint64(ELEMENT_STRIDE) * np.uint64(e)
        words = block(key, stream, place >> two)
        low = words[1] if place & one else words[0]
        high = words[3] if place & one else words[2]
        out[e] = unit(high if place & two else low)


@njit(nogil=True, cache=True)
def draw_pair(key: Key, stream: np.uint64, n: np.uint64) -> _Drawn:
    """Draws ``n`` and ``n + 1``."""
    counter = n >> np.uint64(2)
    words = block(key, stream, counter)
    odd, upper = n & np.uint64(1), n & np.uint64(2)
    if odd and upper:
        return words[3], block(key, stream, counter + np.uint64(1))[0]
    # Selected without branches, as the choice varies from element to element.
    low, high = (words[1], words[2]) if odd else (words[0], words[1])
    return (words[2] if upper else low), (words[3] if upper else high)


# -- distributions: one number for each element of an output -----------------------------------------------------------


@njit(nogil=True, cache=True)
def fill_draws(out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64) -> None:
    """Consecutive draws from ``start`` on."""
    for i in range(out.size):
        out[i] = draw(key, stream, start + np.uint64(i))


@njit(nogil=True, cache=True)
def fill_bits(out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64) -> None:
    """The first draw of each element, as 64-bit integers."""
    for e in range(out.size):
        out[e] = draw(key, stream, start + np.uint64(ELEMENT_STRIDE * e))


@njit(nogil=True, cache=True)
def fill_uniform(
    out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, low: np.float32, high: np.float32
) -> None:
    """Uniform numbers in [low, high), in single precision."""
    top = np.nextafter(high, low)
    base = min(low, top)
    scale = (max(low, top) - base) * _TO_UNIT
    for e in range(out.size):
        bits = draw(key, stream, start + np.uint64(ELEMENT_STRIDE * e))
        out[e] = fma(np.float32(bits), scale, base)


@njit(nogil=True, cache=True)
def fill_uniform_double(
    out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, low: float, high: float
) -> None:
    """Uniform numbers in [low, high), in double precision."""
    top = np.nextafter(high, low)
    base = min(low, top)
    scale = (max(low, top) - base) * 2.0**-64
    for e in range(out.size):
        bits = draw64(key, stream, start + np.uint64(ELEMENT_STRIDE * e))
        out[e] = fma(np.float64(bits), scale, base)


@njit(nogil=True, cache=True)
def fill_rows_of_bits(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64) -> None:
    """:func:`fill_bits` for each row."""
    for row in range(len(out)):
        fill_bits(out[row], key, streams[row], start)


@njit(nogil=True, cache=True)
def fill_rows(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, low: np.float32, high: np.float32
) -> None:
    """:func:`fill_uniform` for each row."""
    for row in range(len(out)):
        fill_uniform(out[row], key, streams[row], start, low, high)


@njit(nogil=True, cache=True)
def fill_rows_double(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, low: float, high: float) -> None:
    """:func:`fill_uniform_double` for each row."""
    for row in range(len(out)):
        fill_uniform_double(out[row], key, streams[row], start, low, high)


@njit(nogil=True, cache=True)
def normal(key: Key, stream: np.uint64, n: np.uint64) -> np.float32:
    """A standard normal number: the cosine branch of the Box-Muller transform."""
    a, b = draw_pair(key, stream, n)
    radius = math.sqrt(np.float32(-2) * math.log(unit(a)))
    return np.float32(radius) * np.float32(math.cos(np.float32(2 * math.pi) * unit(b)))


@njit(nogil=True, cache=True)
def normal_double(key: Key, stream: np.uint64, n: np.uint64) -> float:
    """:func:`normal` in double precision, from four draws."""
    a = np.float64(draw64(key, stream, n)) * 2.0**-64
    b = np.float64(draw64(key, stream, n + np.uint64(2))) * 2.0**-64
    return math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b)


@njit(nogil=True, cache=True)
def fill_normal(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, mean: np.float32, stddev: np.float32
) -> None:
    """Normally distributed numbers, in single precision; each row has its stream."""
    for row in range(len(out)):
        numbers, stream = out[row], streams[row]
        for e in range(numbers.size):
            numbers[e] = fma(normal(key, stream, start + np.uint64(ELEMENT_STRIDE * e)), stddev, mean)


@njit(nogil=True, cache=True)
def fill_normal_double(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, mean: float, stddev: float
) -> None:
    """:func:`fill_normal` in double precision."""
    for row in range(len(out)):
        numbers, stream = out[row], streams[row]
        for e in range(numbers.size):
            numbers[e] = fma(normal_double(key, stream, start + np.uint64(ELEMENT_STRIDE * e)), stddev, mean)


@njit(nogil=True, cache=True)
def fill_below(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, bound: np.uint64, in_a_row: bool
) -> None:
    """Unbiased integers in [0, bound); each row has its stream.

    ``in_a_row``: elements use consecutive draws, without gaps.
    """
    for row in range(len(out)):
        numbers, stream, n = out[row], streams[row], start
        for e in range(numbers.size):
            if not in_a_row:
                n = start + np.uint64(ELEMENT_STRIDE * e)
            numbers[e], n = draw_below(key, stream, n, bound)


@njit(nogil=True, cache=True)
def fill_weighted(
    out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, cumulative: np.ndarray, in_a_row: bool
) -> None:
    """Indices with the probabilities whose cumulative sums are ``cumulative``, ending in 1; each row has its stream."""
    stride = np.uint64(2 if in_a_row else ELEMENT_STRIDE)
    for row in range(len(out)):
        numbers, stream = out[row], streams[row]
        for e in range(numbers.size):
            a, b = draw_pair(key, stream, start + stride * np.uint64(e))
            u = (np.float64(a) + np.float64(b) * 2.0**32) / 2.0**64
            numbers[e] = np.searchsorted(cumulative, u)


# -- gamma, beta and Poisson: by rejection, like the GNU C++ library ---------------------------------------------------


@njit(nogil=True, cache=True)
def canonical(key: Key, stream: np.uint64, n: np.uint64, real: float) -> tuple[float, np.uint64]:
    """A number in [0, 1) of the type of ``real``, and the position after it."""
    if isinstance(real, np.float32):
        return min(unit(draw(key, stream, n)), np.float32(1 - 2.0**-24)), n + np.uint64(1)
    a, b = draw_pair(key, stream, n)
    return _canonical_of(a, b), n + np.uint64(2)


@njit(nogil=True, cache=True)
def _canonical_of(low: np.uint64, high: np.uint64) -> float:
    """A number in [0, 1) from two draws."""
    return min((np.float64(low) + np.float64(high) * 2.0**32) / 2.0**64, 1 - 2.0**-53)


@njit(nogil=True, cache=True)
def like(value: float, real: float) -> float:
    """``value`` in the precision of ``real``."""
    if isinstance(real, np.float32):
        return np.float32(value)
    return np.float64(value)


@njit(nogil=True, cache=True)
def polar_normal(key: Key, stream: np.uint64, n: np.uint64, spare: np.ndarray) -> tuple[float, np.uint64]:
    """A standard normal number by Marsaglia's polar method, and the position after it.

    The method gives two numbers; ``spare`` keeps the second for the next call: [1, number], or [0, _].
    """
    real = spare[0]
    if spare[0] != 0:
        spare[0] = 0
        return spare[1], n
    while True:
        x, n = canonical(key, stream, n, real)
        y, n = canonical(key, stream, n, real)
        x = like(2, real) * x - like(1, real)
        y = like(2, real) * y - like(1, real)
        square = x * x + y * y
        if 0 < square <= 1:
            break
    factor = like(math.sqrt(like(-2, real) * like(math.log(square), real) / square), real)
    spare[0] = 1
    spare[1] = x * factor
    return y * factor, n


@njit(nogil=True, cache=True)
def gamma_above_one(
    key: Key, stream: np.uint64, n: np.uint64, spare: np.ndarray, shape: float
) -> tuple[float, float, np.uint64]:
    """Two factors of a number of the gamma distribution of ``shape`` >= 1 and scale 1, and the position after it.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    """
    real = spare[0]
    one = like(1, real)
    d = shape - one / like(3, real)
    c = one / like(math.sqrt(like(9, real) * d), real)
    while True:
        x, n = polar_normal(key, stream, n, spare)
        v = one + c * x
        if v <= 0:
            continue
        v = v * v * v
        u, n = canonical(key, stream, n, real)
        if u <= one - like(0.0331, real) * x * x * x * x or math.log(u) <= 0.5 * x * x + d * (1 - v + math.log(v)):
            return d, v, n


@njit(nogil=True, cache=True)
def gamma(key: Key, stream: np.uint64, n: np.uint64, spare: np.ndarray, shape: float) -> tuple[float, np.uint64]:
    """A number of the gamma distribution of ``shape`` and scale 1, and the position after it."""
    real = spare[0]
    if shape >= 1:
        d, v, n = gamma_above_one(key, stream, n, spare, shape)
        return d * v, n
    d, v, n = gamma_above_one(key, stream, n, spare, shape + like(1, real))
    u, n = canonical(key, stream, n, real)
    while u == 0:
        u, n = canonical(key, stream, n, real)
    return like(u ** (like(1, real) / shape), real) * d * v, n


@njit(nogil=True, cache=True)
def _fill_row_of_beta(
    out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, alpha: float, beta: float
) -> None:
    spare_a, spare_b = np.zeros(2, out.dtype), np.zeros(2, out.dtype)
    real = spare_a[0]
    alpha, beta = like(alpha, real), like(beta, real)
    for e in range(out.size):
        n = start + np.uint64(ELEMENT_STRIDE * e)
        if alpha < 1 and beta < 1:
            # Both gamma variates may underflow: they are computed relative to the larger one.
            d_a, v_a, n = gamma_above_one(key, stream, n, spare_a, alpha + like(1, real))
            d_b, v_b, n = gamma_above_one(key, stream, n, spare_b, beta + like(1, real))
            u, n = canonical(key, stream, n, real)
            v, n = canonical(key, stream, n, real)
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
            a, n = gamma(key, stream, n, spare_a, alpha)
            b, n = gamma(key, stream, n, spare_b, beta)
            out[e] = a / (a + b)


@njit(nogil=True, cache=True)
def fill_beta(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, alpha: float, beta: float) -> None:
    """Numbers of the beta distribution, in the precision of ``out``; each row has its stream."""
    for row in range(len(out)):
        _fill_row_of_beta(out[row], key, streams[row], start, alpha, beta)


_FEW = 12.0
_TERMS = 12
# Elements whose first draws are made together.
_CHUNK = 64


@njit(nogil=True, cache=True)
def poisson_terms(mean: float, terms: np.ndarray) -> None:
    """The constants that :func:`poisson` needs for a mean; the first of the ``_TERMS`` numbers is the mean itself."""
    terms[0] = mean
    if mean < _FEW:
        terms[1] = math.exp(-mean)
        return
    m = math.floor(mean)
    reach = math.sqrt(2 * m * math.log(32 * m / (math.pi / 4)))
    d = math.floor(max(6.0, min(m, reach)) + 0.5)
    cx = 2 * m + d
    root = math.sqrt(m)
    c1 = root * math.sqrt(math.pi / 2)
    c2 = c1 + math.sqrt(math.pi / 4 * cx) * math.exp(1 / cx)
    c3 = c2 + 1
    c4 = c3 + 1
    c5 = c4 + 1.0129030479320018583
    total = c5 + 2 * cx * math.exp(-d / cx * (1 + d / 2)) / d
    terms[1], terms[2], terms[3], terms[4], terms[5] = m, math.log(mean), math.lgamma(m + 1), root, d
    terms[6], terms[7], terms[8], terms[9], terms[10], terms[11] = c1, c2, c3, c4, c5, total


@njit(nogil=True, cache=True)
def log_factorial_of(number: float, known: np.ndarray) -> float:
    """The logarithm of the factorial; ``known`` caches those of small numbers, NaN until computed."""
    if number >= known.size:
        return math.lgamma(number + 1)
    place = int(number)
    if math.isnan(known[place]):
        known[place] = math.lgamma(number + 1)
    return known[place]


@njit(nogil=True, cache=True)
def _fill_first_words(words: np.ndarray, key: Key, stream: np.uint64, start: np.uint64) -> None:
    """The words of the first three blocks of consecutive elements, in columns. Vectorized."""
    for e in range(words.shape[1]):
        counter = (start + np.uint64(ELEMENT_STRIDE) * np.uint64(e)) >> np.uint64(2)
        words[0, e], words[1, e], words[2, e], words[3, e] = block(key, stream, counter)
        words[4, e], words[5, e], words[6, e], words[7, e] = block(key, stream, counter + np.uint64(1))
        words[8, e], words[9, e], words[10, e], words[11, e] = block(key, stream, counter + np.uint64(2))


@njit(nogil=True, cache=True)
def _poisson_of_few(key: Key, stream: np.uint64, n: np.uint64, limit: float, words: np.ndarray, e: int) -> float:
    """How many canonical numbers, multiplied, stay above ``limit``; column ``e`` of ``words`` has the first ones."""
    count, product = 0.0, 1.0
    place = np.int64(n & np.uint64(3))
    while place < len(words) - 1:
        product *= _canonical_of(words[place, e], words[place + 1, e])
        if product <= limit:
            return count
        count += 1
        place += 2
    n = (n >> np.uint64(2) << np.uint64(2)) + np.uint64(place)
    while True:
        u, n = canonical(key, stream, n, 0.0)
        product *= u
        if product <= limit:
            return count
        count += 1


@njit(nogil=True, cache=True)
def poisson(
    key: Key, stream: np.uint64, n: np.uint64, terms: np.ndarray, factorials: np.ndarray, spare: np.ndarray
) -> float:
    """A Poisson-distributed number for the mean, at least ``_FEW``, with these :func:`poisson_terms`.

    ``factorials`` is the cache of :func:`log_factorial_of`.

    Source: Devroye, "Non-Uniform Random Variate Generation", 1986, X.3.
    """
    m, log_mean, log_factorial, root, d = terms[1], terms[2], terms[3], terms[4], terms[5]
    c1, c2, c3, c4, c5, total = terms[6], terms[7], terms[8], terms[9], terms[10], terms[11]
    cx = 2 * m + d
    spare[0] = 0
    while True:
        u, n = canonical(key, stream, n, 0.0)
        exponential, n = canonical(key, stream, n, 0.0)
        u, exponential = total * u, -math.log(1 - exponential)
        weight = 0.0
        if u <= c1:
            z, n = polar_normal(key, stream, n, spare)
            x = math.floor(-abs(z) * root - 1)
            weight = -z * z / 2
            if x < -m:
                continue
        elif u <= c2:
            z, n = polar_normal(key, stream, n, spare)
            y = 1 + abs(z) * math.sqrt(cx / 2)
            x = math.ceil(y)
            weight = y * (2 - y) / cx
            if x > d:
                continue
        elif u <= c3:
            x = -1.0
        elif u <= c4:
            x = 0.0
        elif u <= c5:
            x, weight = 1.0, 1 / 78
        else:
            v, n = canonical(key, stream, n, 0.0)
            y = d - math.log(1 - v) * 2 * cx / d
            x = math.ceil(y)
            weight = -d / cx * (1 + y / 2)
        if weight - exponential - x * log_mean <= log_factorial - log_factorial_of(x + m, factorials):
            return x + m


# -- noise: an array in, an array of the same type out -----------------------------------------------------------------


@njit(nogil=True, cache=True)
def add_normal(
    out: np.ndarray,
    source: np.ndarray,
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    mean: np.float32,
    stddev: np.float32,
) -> None:
    """``source`` plus normally distributed noise, in single precision."""
    for e in range(out.size):
        noise = fma(normal(key, stream, start + np.uint64(ELEMENT_STRIDE * e)), stddev, mean)
        out[e] = converted(np.float32(source[e]) + noise, out[e])


@njit(nogil=True, cache=True)
def add_normal_double(
    out: np.ndarray, source: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, mean: float, stddev: float
) -> None:
    """:func:`add_normal` in double precision, for wide integers."""
    for e in range(out.size):
        noise = fma(normal_double(key, stream, start + np.uint64(ELEMENT_STRIDE * e)), stddev, mean)
        out[e] = converted(np.float64(source[e]) + noise, out[e])


@njit(nogil=True, cache=True)
def replace_by_shots(
    out: np.ndarray, source: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, factor: np.float32
) -> None:
    """Poisson-distributed numbers with mean ``source / factor``, times ``factor``; 0 where the mean isn't positive."""
    # The terms of previous means, by the lowest byte of the source: those of all means for uint8.
    known = np.full((256, _TERMS), np.nan)
    factorials, spare = np.full(256, np.nan), np.zeros(2)
    # The first draws of the elements around the last one that needed them.
    words, drawn = np.empty((12, _CHUNK), np.uint64), -1
    for e in range(out.size):
        mean = np.float32(source[e]) / factor
        count = np.float32(0)
        if 0 < mean < np.inf:
            terms = known[np.int64(source[e]) & 255]
            if terms[0] != mean:
                poisson_terms(np.float64(mean), terms)
            n, chunk = start + np.uint64(ELEMENT_STRIDE * e), e // _CHUNK
            if terms[0] >= _FEW:
                count = np.float32(poisson(key, stream, n, terms, factorials, spare))
            else:
                if chunk != drawn:
                    drawn = chunk
                    _fill_first_words(words, key, stream, start + np.uint64(ELEMENT_STRIDE * _CHUNK * chunk))
                count = np.float32(_poisson_of_few(key, stream, n, terms[1], words, e % _CHUNK))
        out[e] = converted(count * factor, out[e])


@njit(nogil=True, cache=True)
def sprinkle(
    out: np.ndarray,
    source: np.ndarray,
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    probability: np.float32,
    salt_probability: np.float32,
    salt: np.generic,
    pepper: np.generic,
) -> None:
    """Replaces random pixels with salt or pepper. Arrays are (planes, pixels, channels); one draw decides a pixel."""
    units = np.empty(1024, np.float32)
    for first in range(0, out.shape[1], units.size):
        count = min(units.size, out.shape[1] - first)
        fill_units(key, stream, start + np.uint64(ELEMENT_STRIDE * first), units[:count])
        for plane in range(out.shape[0]):
            for place in range(count):
                u, pixel = units[place], first + place
                for channel in range(out.shape[2]):
                    if u >= probability:
                        out[plane, pixel, channel] = source[plane, pixel, channel]
                    else:
                        out[plane, pixel, channel] = salt if u < salt_probability else pepper


# -- windows -----------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, error_model="numpy")  # aspect ratios may be 0
def crop_window(
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    height: int,
    width: int,
    area: tuple[np.float32, np.float32],
    ratio: tuple[np.float32, np.float32],
    attempts: int,
) -> tuple[int, int, int, int]:
    """A random window (y, x, height, width) with random area, aspect ratio and position.

    Up to ``attempts`` pairs of area and ratio are drawn; if none fits the image, the result is the largest window whose
    ratio is in range.
    """
    n = start
    one = np.float32(1)
    widest = max(1, int(np.float32(height) * ratio[1]))
    highest = max(1, int(np.float32(width) * (one / ratio[0])))
    image_area = np.float32(height * width)
    smallest = image_area * area[0]
    log_low, log_high = np.float32(math.log(ratio[0])), np.float32(math.log(ratio[1]))
    h, w = height, width
    if np.float32(height * widest) < smallest:
        w = widest
    elif np.float32(width * highest) < smallest:
        h = highest
    else:
        found = False
        for _ in range(attempts):
            u, n = canonical(key, stream, n, one)
            target = (u * (area[1] - area[0]) + area[0]) * image_area
            u, n = canonical(key, stream, n, one)
            aspect = np.float32(math.exp(u * (log_high - log_low) + log_low))
            w = max(1, converted(np.float32(math.sqrt(target * aspect)), np.int64(0)))
            h = max(1, converted(np.float32(math.sqrt(target / aspect)), np.int64(0)))
            aspect = np.float32(w) / np.float32(h)
            if w <= width and h <= height and ratio[0] <= aspect <= ratio[1]:
                found = True
                break
        if not found:
            h, w = height, width
            aspect = np.float32(width) / np.float32(height)
            if aspect > ratio[1]:
                w = widest
            elif aspect < ratio[0]:
                h = highest
            scale = np.float32(math.sqrt(min(one, area[1] * image_area / np.float32(w * h))))
            h, w = max(1, int(np.float32(h) * scale)), max(1, int(np.float32(w) * scale))
    y, n = draw_below(key, stream, n, np.uint64(height - h + 1))
    x, n = draw_below(key, stream, n, np.uint64(width - w + 1))
    return int(y), int(x), h, w


@njit(nogil=True, cache=True)
def crop_windows(
    key: Key,
    streams: np.ndarray,
    start: np.uint64,
    extents: np.ndarray,
    area: tuple[np.float32, np.float32],
    ratio: tuple[np.float32, np.float32],
    attempts: int,
    windows: np.ndarray,
) -> None:
    """A random window of each image; see :func:`crop_window`."""
    for i in range(len(streams)):
        y, x, h, w = crop_window(key, streams[i], start, extents[i, 0], extents[i, 1], area, ratio, attempts)
        windows[i, 0], windows[i, 1], windows[i, 2], windows[i, 3] = y, x, h, w
