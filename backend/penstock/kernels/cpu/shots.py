"""Photon shot noise: Poisson-distributed numbers from random streams, drawn by rejection as in the GNU C++ library."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.distributions import polar_normal
from penstock.kernels.cpu.options import inner, njit
from penstock.kernels.cpu.philox import (
    ELEMENT_STRIDE,
    ELEMENTS_AT_ONCE,
    Draws,
    canonical,
    canonical_of,
    draws_of,
    empty_words,
    fill_first_words,
    next_canonical,
)
from penstock.kernels.random_keys import Key

_MIN_MEAN_FOR_REJECTION = 12.0


_TERMS = 12


@njit(nogil=True)
def poisson_terms(mean: float, terms: np.ndarray) -> None:
    """Compute the ``_TERMS`` constants that :func:`poisson` needs for a mean; the first of them is the mean itself."""
    terms[0] = mean
    if mean < _MIN_MEAN_FOR_REJECTION:
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


@njit(nogil=True)
def log_factorial_of(number: float, known: np.ndarray) -> float:
    """Return the logarithm of a number's factorial; ``known`` caches the results for small numbers, and is NaN where none is cached."""
    if number >= known.size:
        return math.lgamma(number + 1)
    place = int(number)
    if math.isnan(known[place]):
        known[place] = math.lgamma(number + 1)
    return known[place]


@inner
def _poisson_of_few(key: Key, stream: np.uint64, n: np.uint64, limit: float, words: np.ndarray, e: int) -> float:
    """Draw numbers from [0, 1) until their product is ``limit`` or less; return how many were drawn before that.

    Column ``e`` of ``words`` holds the first draws.
    """
    count, product = 0.0, 1.0
    place = np.int64(n & np.uint64(3))
    while place < len(words) - 1:
        product *= canonical_of(words[place, e], words[place + 1, e])
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


@inner
def poisson(draws: Draws, n: np.uint64, terms: np.ndarray, factorials: np.ndarray) -> float:
    """Return a Poisson-distributed number with a mean of at least ``_MIN_MEAN_FOR_REJECTION``, from its
    :func:`poisson_terms`.

    ``terms`` are the mean's :func:`poisson_terms`; ``factorials`` is the cache of :func:`log_factorial_of`.

    Source: Devroye, "Non-Uniform Random Variate Generation", 1986, X.3.
    """
    m, log_mean, log_factorial, root, d = terms[1], terms[2], terms[3], terms[4], terms[5]
    c1, c2, c3, c4, c5, total = terms[6], terms[7], terms[8], terms[9], terms[10], terms[11]
    cx = 2 * m + d
    spare = np.nan
    while True:
        u, n = next_canonical(draws, n, 0.0)
        exponential, n = next_canonical(draws, n, 0.0)
        u, exponential = total * u, -math.log(1 - exponential)
        weight = 0.0
        if u <= c1:
            z, n, spare = polar_normal(draws, n, spare)
            x = math.floor(-abs(z) * root - 1)
            weight = -z * z / 2
            if x < -m:
                continue
        elif u <= c2:
            z, n, spare = polar_normal(draws, n, spare)
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
            v, n = next_canonical(draws, n, 0.0)
            y = d - math.log(1 - v) * 2 * cx / d
            x = math.ceil(y)
            weight = -d / cx * (1 + y / 2)
        if weight - exponential - x * log_mean <= log_factorial - log_factorial_of(x + m, factorials):
            return x + m


@njit(nogil=True)
def replace_by_shots(
    out: np.ndarray, source: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, factor: np.float32
) -> None:
    """Replace each value by ``factor`` times a Poisson-distributed number with the mean ``source / factor``; by 0 if the mean is not
    positive.

    As in DALI, the mean is the source times the reciprocal of ``factor``, in single precision.
    """
    reciprocal = np.float32(1) / factor
    # The terms of previous means, indexed by the lowest byte of the source, so that each value of uint8 has an entry.
    known = np.full((256, _TERMS), np.nan)
    factorials = np.full(256, np.nan)
    # The first draws of the elements of chunk ``drawn``, the last one that needed them.
    words, drawn = empty_words(), -1
    for e in range(out.size):
        mean = np.float32(source[e]) * reciprocal
        count = np.float32(0)
        if 0 < mean < np.inf:
            terms = known[np.int64(source[e]) & 255]
            if terms[0] != mean:
                poisson_terms(np.float64(mean), terms)
            n, chunk = start + np.uint64(ELEMENT_STRIDE * e), e // ELEMENTS_AT_ONCE
            if chunk != drawn:
                drawn = chunk
                fill_first_words(words, key, stream, start + np.uint64(ELEMENT_STRIDE * ELEMENTS_AT_ONCE * chunk))
            if terms[0] >= _MIN_MEAN_FOR_REJECTION:
                draws = draws_of(words, e, key, stream, n)
                count = np.float32(poisson(draws, n, terms, factorials))
            else:
                count = np.float32(_poisson_of_few(key, stream, n, terms[1], words, e % ELEMENTS_AT_ONCE))
        out[e] = converted(count * factor, out[e])
