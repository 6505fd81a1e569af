"""The sources of random numbers: seeds, a stream for each sample, and shuffles. This module needs only NumPy.

The rules are DALI's, and where DALI uses it, the GNU C++ library's, so that a seeded pipeline draws the same numbers:

- ``std::seed_seq`` expands the pipeline's seed to words; each random operator without a seed takes the next word;
- an operator's seed is the key of its Philox generator; each sample of each batch has a separate stream;
- file readers shuffle with ``std::shuffle`` and pick from their buffer with ``std::minstd_rand0``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.random_keys import Key

__all__ = [
    "CROP_KEY",
    "SAMPLE_STRIDE",
    "MinimalStandard",
    "Stream",
    "bounded",
    "mersenne_twister",
    "mersenne_twister_64",
    "philox",
    "sample_stream",
    "seed_sequence",
    "seed_slots",
    "std_shuffle",
    "stream_from_state",
]

_WORD, _LONG_WORD = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_WORDS = {32: _WORD, 64: _LONG_WORD}  # by the number of bits
# The number of words in the state of std::mt19937_64, and the offset of its recurrence.
_LENGTH, _MIDDLE = 312, 156
_SEED_SLOTS = 1024
# A mask of the bits of a block's number that the position of a draw can hold.
_COUNTED = 2**62 - 1
SAMPLE_STRIDE = 65537
"""The difference between the stream numbers of consecutive samples."""

CROP_KEY = np.uint64(0x012345678ABCDEFE)
"""The number with which an operator's key is XORed to draw random windows."""


class Stream(NamedTuple):
    """The random stream of one sample: arguments for the kernels in ``kernels/cpu`` that draw random numbers.

    Attributes:
        key: the operator's seed; see :data:`~penstock.kernels.random_keys.Key`.
        stream: the upper half of the generator's counter, which is different for each sample and each batch.
        start: the position of the first draw.
    """

    key: Key
    stream: np.uint64
    start: np.uint64 = np.uint64(0)

    def launch_values(self) -> dict[str, np.uint64]:
        """Return the arguments of the kernels in ``kernels/cuda/philox.cu``."""
        key, base = self.key if isinstance(self.key, tuple) else (self.key, np.uint64(0))
        return {"key": key, "base": base, "stream": self.stream, "start": self.start}


def sample_stream(seed: int, produced: int, index: int) -> Stream:
    """Return the stream of sample ``index`` of a batch, if the operator has produced ``produced`` samples before that batch."""
    return Stream(np.uint64(seed & _LONG_WORD), np.uint64(produced + SAMPLE_STRIDE * index & _LONG_WORD))


def stream_from_state(state: np.ndarray, index: int) -> Stream:
    """Return the stream of sample ``index``, for a generator whose state is computed in the graph.

    ``state`` is uint32 of shape (7,): the low and the high word of the key, of the block's counter and of the stream; then the phase.
    """
    if state.size != 7:
        raise ValueError(f"The state of a random generator must have 7 words. Got: a tensor of shape {state.shape}")
    words = [int(word) for word in state.reshape(-1)]
    key, counter, stream = (low | high << 32 for low, high in zip(words[0:6:2], words[1:6:2]))
    base = counter & ~_COUNTED
    own: Key = (_uint64(key), _uint64(base)) if base else _uint64(key)
    return Stream(own, _uint64(stream + SAMPLE_STRIDE * index), _uint64((counter & _COUNTED) * 4 + words[6] % 4))


def _uint64(number: int) -> np.uint64:
    return np.uint64(number & _LONG_WORD)


# -- seeds -------------------------------------------------------------------------------------------------------------


def seed_sequence(seed: int, count: int) -> np.ndarray:
    """Return ``count`` words that ``std::seed_seq{seed}`` generates, as uint32; ``seed`` is taken modulo 2**32.

    >>> seed_sequence(7, 4).tolist()
    [3058802511, 457619115, 2864960031, 537765756]
    """
    given = [seed & _WORD]
    words = [0x8B8B8B8B] * count
    t = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    p = (count - t) // 2
    q = p + t
    rounds = max(len(given) + 1, count)
    for k in range(rounds):
        r = 1664525 * _mixed(words[k % count] ^ words[(k + p) % count] ^ words[(k - 1) % count]) & _WORD
        words[(k + p) % count] = (words[(k + p) % count] + r) & _WORD
        r += len(given) if k == 0 else k % count + (given[k - 1] if k <= len(given) else 0)
        words[(k + q) % count] = (words[(k + q) % count] + r) & _WORD
        words[k % count] = r & _WORD
    for k in range(rounds, rounds + count):
        r = 1566083941 * _mixed(words[k % count] + words[(k + p) % count] + words[(k - 1) % count] & _WORD) & _WORD
        words[(k + p) % count] ^= r
        r = (r - k % count) & _WORD
        words[(k + q) % count] ^= r
        words[k % count] = r
    return np.array(words, np.uint32)


def _mixed(word: int) -> int:
    return word ^ (word >> 27)


def seed_slots(pipeline_seed: int) -> list[int]:
    """Return the seeds that a pipeline's seed gives to operators without a seed, in graph order.

    Readers take a seed, too; operators with a seed take none. If an operator is called with several input sets, each of its instances
    takes a slot, but all use the first one's seed.
    """
    return seed_sequence(pipeline_seed, _SEED_SLOTS).tolist()


# -- shuffles ----------------------------------------------------------------------------------------------------------


def mersenne_twister(seed: int) -> Iterator[int]:
    """Yield the endless output of ``std::mt19937(seed)``."""
    generator = np.random.MT19937()
    generator._legacy_seeding(seed & _WORD)  # private: numpy has no public name for std::mt19937's seeding
    while True:
        yield from generator.random_raw(1024).tolist()


def mersenne_twister_64(seed: int) -> Iterator[int]:
    """Yield the endless output of ``std::mt19937_64(seed)``.

    Source: T. Nishimura, "Tables of 64-bit Mersenne Twisters", ACM TOMACS 10 (2000).
    """
    words = [seed & _LONG_WORD]
    for index in range(1, _LENGTH):
        words.append((6364136223846793005 * (words[-1] ^ (words[-1] >> 62)) + index) & _LONG_WORD)
    state = np.array(words, np.uint64)
    while True:
        _twist(state)
        numbers = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
        numbers ^= (numbers << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
        numbers ^= (numbers << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
        yield from (numbers ^ (numbers >> np.uint64(43))).tolist()


def _twist(state: np.ndarray) -> None:
    """Advance the generator's state by one round, in place."""
    upper, lower = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)
    for begin, end in ((0, _MIDDLE), (_MIDDLE, _LENGTH)):
        following = np.append(state[begin + 1 : end], state[end % _LENGTH])
        joined = (state[begin:end] & upper) | (following & lower)
        odd = np.where(joined & np.uint64(1), np.uint64(0xB5026F5AA96619E9), np.uint64(0))
        state[begin:end] = state[_MIDDLE - begin : _MIDDLE - begin + end - begin] ^ (joined >> np.uint64(1)) ^ odd


def philox(stream: Stream) -> Iterator[int]:
    """Yield the endless draws of a sample's stream, 32 bits each."""
    from penstock.kernels.cpu.philox import fill_draws

    count, position = 8, int(stream.start)
    while True:
        some = np.empty(count, np.uint64)
        fill_draws(some, stream.key, stream.stream, np.uint64(position))
        yield from some.tolist()
        position, count = position + count, min(2 * count, 64)


def bounded(draws: Iterator[int], bound: int, bits: int = 32) -> int:
    """Return an unbiased number in [0, bound) from draws of ``bits`` bits (Lemire's method)."""
    word = _WORDS[bits]
    product = next(draws) * bound
    if product & word < bound:
        threshold = (word + 1 - bound) % bound
        while product & word < threshold:
            product = next(draws) * bound
    return product >> bits


def std_shuffle(items: Sequence[int], draws: Iterator[int], bits: int = 32) -> list[int]:
    """Return ``items`` shuffled as by ``std::shuffle``, with draws of ``bits`` bits.

    If one draw has enough bits for two positions, both are taken from it.
    """
    order, count = list(items), len(items)
    if count * count >> bits:
        for i in range(1, count):
            j = bounded(draws, i + 1, bits)
            order[i], order[j] = order[j], order[i]
        return order
    first = 1
    if count and count % 2 == 0:
        j = bounded(draws, 2, bits)
        order[1], order[j] = order[j], order[1]
        first = 2
    for i in range(first, count, 2):
        j, k = divmod(bounded(draws, (i + 1) * (i + 2), bits), i + 2)
        order[i], order[j] = order[j], order[i]
        order[i + 1], order[k] = order[k], order[i + 1]
    return order


class MinimalStandard:
    """``std::minstd_rand0`` seeded by ``std::seed_seq{seed}``, with which readers pick samples from their buffer.

    Attributes:
        state: the generator's state; part of a reader's checkpoint.
    """

    _MODULUS = 2**31 - 1

    def __init__(self, seed: int) -> None:
        self.state = int(seed_sequence(seed, 4)[3]) % self._MODULUS or 1

    def below(self, bound: int) -> int:
        """Return a number in [0, bound), as ``std::uniform_int_distribution`` draws it from this generator."""
        scaling = (self._MODULUS - 2) // bound
        while True:
            self.state = self.state * 16807 % self._MODULUS
            number = self.state - 1
            if number < scaling * bound:
                return number // scaling
