"""The random streams on the CPU: Philox4x32-10.

A stream is identified by three 64-bit numbers ``(key, stream, start)`` and has no state: draw ``n`` is word ``n & 3``
of the block with counter ``n >> 2``, so any draw can be computed without the previous ones. Threads, samples and the
GPU can draw independently and still agree. Functions that consume a varying number of draws also return the number of the draw after
the last one.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11. The mapping from draws to numbers is
DALI's, so that both libraries give the same values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.deferred import overload
from penstock.kernels.cpu.options import inner, njit
from penstock.kernels.cpu.simd import at, pointer, pointer_at
from penstock.kernels.random_keys import Key

ELEMENT_STRIDE = 257
"""Element ``e`` of an output starts at draw ``257 * e`` of its sample's stream."""

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
# The words of a block; a number and the position after its draws.
_Block = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_Drawn = tuple[np.uint64, np.uint64]
Draws = tuple[Key, np.uint64, np.uint64, Any]
"""A key, a stream, the number of an element's first draw, and a pointer to the words that :func:`fill_first_words` computed for it."""
TO_UNIT = np.float32(2.0**-32)


def _parts(key: Key) -> tuple[np.uint64, np.uint64]:
    """Return the key itself, and the number of the block to which draw 0 belongs. For use in kernels."""
    raise TypeError("this function can only be called in numba kernels")


# numba compares the signatures of overloads, annotations included, so this function has none.
@overload(_parts, inline="always")
def _parts_of(key):  # type: ignore[no-untyped-def]
    if isinstance(key, types.BaseTuple):
        return lambda key: (key[0], key[1])
    return lambda key: (key, np.uint64(0))


@njit(nogil=True, inline="always")
def block(key: Key, stream: np.uint64, counter: np.uint64) -> _Block:
    """Return the four words of block ``counter``, as 64-bit integers."""
    key, base = _parts(key)
    counter += base
    k0, k1 = key & _LOW, key >> _32
    c0, c1 = counter & _LOW, counter >> _32
    c2, c3 = stream & _LOW, stream >> _32
    for _ in range(10):
        # Bits above the low 32 of a word are cleared only at the end and before multiplications, where that costs nothing, because the
        # instruction ignores these bits.
        p0, p1 = _MULTIPLIER_0 * (c0 & _LOW), _MULTIPLIER_1 * (c2 & _LOW)
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1, (p0 >> _32) ^ c3 ^ k1, p0
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return c0 & _LOW, c1 & _LOW, c2 & _LOW, c3 & _LOW


@njit(nogil=True)
def fill_blocks(out: np.ndarray, key: Key, stream: np.uint64, counter: np.uint64) -> None:
    """Fill ``out`` with the words of consecutive blocks, as 64-bit integers; after the last block of a stream comes the first block of the
    next stream.
    """
    for first in range(0, out.size, 4):
        out[first], out[first + 1], out[first + 2], out[first + 3] = block(key, stream, counter)
        counter += np.uint64(1)
        if counter == 0:
            stream += np.uint64(1)


@njit(nogil=True)
def draw(key: Key, stream: np.uint64, n: np.uint64) -> np.uint64:
    """Return draw ``n``: 32 random bits, in a 64-bit integer."""
    words = block(key, stream, n >> np.uint64(2))
    word = n & np.uint64(3)
    if word == 0:
        return words[0]
    if word == 1:
        return words[1]
    return words[2] if word == 2 else words[3]


@njit(nogil=True)
def draw64(key: Key, stream: np.uint64, n: np.uint64) -> np.uint64:
    """Return a 64-bit number whose low bits are draw ``n`` and whose high bits are draw ``n + 1``."""
    return draw(key, stream, n) | (draw(key, stream, n + np.uint64(1)) << _32)


@njit(nogil=True)
def draw_below(key: Key, stream: np.uint64, n: np.uint64, bound: np.uint64) -> _Drawn:
    """Return an unbiased number in [0, bound), and the position after its draws."""
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


@njit(nogil=True)
def _draw_below_32_bits(key: Key, stream: np.uint64, n: np.uint64, bound: np.uint64) -> _Drawn:
    """Same as :func:`draw_below`, for bounds below 2**32 (Lemire's method)."""
    one = np.uint64(1)
    product = draw(key, stream, n) * bound
    n += one
    if product & _LOW < bound:
        threshold = ((_LOW + one) - bound) % bound
        while product & _LOW < threshold:
            product = draw(key, stream, n) * bound
            n += one
    return product >> _32, n


@njit(nogil=True)
def unit(bits: np.uint64) -> np.float32:
    """Return 32 random bits as a number in [0, 1]."""
    return np.float32(bits) * TO_UNIT


@njit(nogil=True, inline="always")
def draw_of_element(key: Key, stream: np.uint64, start: np.uint64, element: int) -> np.uint64:
    """Return the first draw of an element. The word of the block is selected without branches, so that loops over elements are
    vectorized.
    """
    one, two = np.uint64(1), np.uint64(2)
    place = start + np.uint64(ELEMENT_STRIDE) * np.uint64(element)
    words = block(key, stream, place >> two)
    low = words[1] if place & one else words[0]
    high = words[3] if place & one else words[2]
    return high if place & two else low


@njit(nogil=True)
def fill_units(key: Key, stream: np.uint64, n: np.uint64, out: np.ndarray) -> None:
    """Fill a float32 array with numbers in [0, 1]; the first element's draw is ``n``."""
    for e in range(out.size):
        out[e] = unit(draw_of_element(key, stream, n, e))


@njit(nogil=True)
def draw_pair(key: Key, stream: np.uint64, n: np.uint64) -> _Drawn:
    """Return draws ``n`` and ``n + 1``."""
    counter = n >> np.uint64(2)
    words = block(key, stream, counter)
    odd, upper = n & np.uint64(1), n & np.uint64(2)
    if odd and upper:
        return words[3], block(key, stream, counter + np.uint64(1))[0]
    # Words are selected without branches, which would be unpredictable: the choice varies from element to element.
    low, high = (words[1], words[2]) if odd else (words[0], words[1])
    return (words[2] if upper else low), (words[3] if upper else high)


@njit(nogil=True)
def fill_pairs(key: Key, stream: np.uint64, n: np.uint64, first: np.ndarray, second: np.ndarray) -> None:
    """Fill ``first`` and ``second`` with the results of :func:`draw_pair` for consecutive elements, the first of which begins at draw
    ``n``, in loops that are vectorized.
    """
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for e in range(first.size):
        place = n + np.uint64(ELEMENT_STRIDE) * np.uint64(e)
        words = block(key, stream, place >> two)
        low, middle = (words[1], words[2]) if place & one else (words[0], words[1])
        high = words[3] if place & one else words[2]
        first[e] = np.uint32(high if place & two else low)
        second[e] = np.uint32(words[3] if place & two else middle)
    # The stride between elements is one more than a multiple of four, so the second draw of every fourth element is the first word of the
    # next block.
    offset = (three - n) & three
    nexts = np.empty(first.size // 4 + 1, np.uint32)
    for k in range(nexts.size):
        place = n + np.uint64(ELEMENT_STRIDE) * (offset + np.uint64(4) * np.uint64(k))
        nexts[k] = np.uint32(block(key, stream, (place >> two) + one)[0])
    for k in range(nexts.size):
        element = offset + np.uint64(4) * np.uint64(k)
        if element < np.uint64(second.size):
            second[element] = nexts[k]


@njit(nogil=True)
def fill_draws(out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64) -> None:
    """Fill ``out`` with consecutive draws from ``start`` on."""
    for i in range(out.size):
        out[i] = draw(key, stream, start + np.uint64(i))


@njit(nogil=True)
def fill_bits(out: np.ndarray, key: Key, stream: np.uint64, start: np.uint64) -> None:
    """Fill ``out`` with the first draw of each element, as 64-bit integers."""
    for e in range(out.size):
        out[e] = draw_of_element(key, stream, start, e)


@njit(nogil=True)
def fill_rows_of_bits(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64) -> None:
    """Same as :func:`fill_bits`, for each row, which has a random stream."""
    for row in range(len(out)):
        fill_bits(out[row], key, streams[row], start)


@njit(nogil=True)
def fill_rows_of_flips(out: np.ndarray, key: Key, streams: np.ndarray, start: np.uint64, last_head: np.uint64) -> None:
    """Fill each row of ``out`` with whether the first draw of each element is at most ``last_head``; each row has a random stream."""
    for row in range(len(out)):
        flips, stream = out[row], streams[row]
        for e in range(flips.size):
            flips[e] = draw_of_element(key, stream, start, e) <= last_head


@njit(nogil=True)
def canonical(key: Key, stream: np.uint64, n: np.uint64, real: float) -> tuple[float, np.uint64]:
    """Return a number in [0, 1) of the type of ``real``, and the position after its draws."""
    if isinstance(real, np.float32):
        return min(unit(draw(key, stream, n)), np.float32(1 - 2.0**-24)), n + np.uint64(1)
    a, b = draw_pair(key, stream, n)
    return canonical_of(a, b), n + np.uint64(2)


WORDS_PER_ELEMENT = 12
"""The number of words that :func:`fill_first_words` computes for each element."""
ELEMENTS_AT_ONCE = 64
"""The number of elements whose first draws are computed together."""


@inner
def empty_words() -> np.ndarray:
    """Return memory for :func:`fill_first_words`."""
    return np.empty((WORDS_PER_ELEMENT, ELEMENTS_AT_ONCE), np.uint64)


@inner
def fill_first_words(words: np.ndarray, key: Key, stream: np.uint64, start: np.uint64) -> None:
    """Compute the words of the first three blocks of consecutive elements, each in its column, in a vectorized loop."""
    one, two = np.uint64(1), np.uint64(2)
    for e in range(ELEMENTS_AT_ONCE):
        counter = (start + np.uint64(ELEMENT_STRIDE) * np.uint64(e)) >> two
        words[0, e], words[1, e], words[2, e], words[3, e] = block(key, stream, counter)
        words[4, e], words[5, e], words[6, e], words[7, e] = block(key, stream, counter + one)
        words[8, e], words[9, e], words[10, e], words[11, e] = block(key, stream, counter + two)


@njit(nogil=True, inline="always")
def draws_of(words: np.ndarray, element: int, key: Key, stream: np.uint64, n: np.uint64) -> Draws:
    """Return the draws of an element, whose first one is ``n``, for :func:`next_canonical`."""
    return key, stream, n >> np.uint64(2) << np.uint64(2), pointer_at(pointer(words), element % ELEMENTS_AT_ONCE)


@inner
def next_canonical(draws: Draws, n: np.uint64, real: float) -> tuple[float, np.uint64]:
    """Return what :func:`canonical` does; words that are known are not computed again."""
    key, stream, first, words = draws
    place = np.int64(n - first)
    if isinstance(real, np.float32):
        bits = known_word(words, place) if place < WORDS_PER_ELEMENT else draw(key, stream, n)
        return min(unit(bits), np.float32(1 - 2.0**-24)), n + np.uint64(1)
    if place + 1 < WORDS_PER_ELEMENT:
        return canonical_of(known_word(words, place), known_word(words, place + 1)), n + np.uint64(2)
    return canonical(key, stream, n, real)


@njit(nogil=True, inline="always")
def known_word(words: Any, place: int) -> np.uint64:
    """Return one of the ``WORDS_PER_ELEMENT`` known words of an element, from the pointer in its ``Draws``."""
    return at(words, place * ELEMENTS_AT_ONCE)


@njit(nogil=True)
def canonical_of(low: np.uint64, high: np.uint64) -> float:
    """Return a number in [0, 1) from two draws."""
    return min((np.float64(low) + np.float64(high) * 2.0**32) / 2.0**64, 1 - 2.0**-53)
