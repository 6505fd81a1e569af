"""Philox in Python integers, from the paper's definition, and the numbers drawn with it."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels.cpu import philox
from penstock.kernels.random_streams import Stream, bounded, sample_stream, std_shuffle
from penstock.kernels.random_streams import philox as draws_of

WORD = (1 << 32) - 1
uint64 = st.integers(0, (1 << 64) - 1)


def philox4x32(counter: list[int], key: list[int]) -> list[int]:
    """Apply ten rounds; see Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011), section 3.3."""
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & WORD, a >> 32 ^ counter[3] ^ key[1], a & WORD]
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return counter


@settings(derandomize=True, deadline=None)
@given(uint64, uint64, uint64)
def test_a_block_is_what_the_paper_defines(low: int, high: int, key: int) -> None:
    words = [value >> shift & WORD for value in (low, high) for shift in (0, 32)]
    expected = philox4x32(words, [key & WORD, key >> 32])
    found = [int(word) for word in philox.block(np.uint64(key), np.uint64(high), np.uint64(low))]
    assert found == expected


@settings(derandomize=True, deadline=None)
@given(uint64, uint64, st.integers(0, 1 << 62), st.integers(1, 300))
def test_draws_do_not_depend_on_how_many_are_taken_at_once(key: int, stream: int, start: int, count: int) -> None:
    own = Stream(np.uint64(key), np.uint64(stream), np.uint64(start))
    drawn = list(itertools.islice(draws_of(own), count))
    last = philox.draw(own.key, own.stream, np.uint64(start + count - 1))
    assert drawn[-1] == last
    assert all(0 <= draw <= WORD for draw in drawn)


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 1 << 31), st.integers(0, 1000), st.integers(0, 1000), st.integers(1, WORD))
def test_bounded_draws_are_within_their_bound(seed: int, produced: int, index: int, bound: int) -> None:
    draws = draws_of(sample_stream(seed, produced, index))
    assert all(0 <= bounded(draws, bound) < bound for _ in range(5))


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 1 << 31), st.integers(0, 200))
def test_a_shuffle_is_a_permutation(seed: int, count: int) -> None:
    assert sorted(std_shuffle(range(count), draws_of(sample_stream(seed, 0, 0)))) == list(range(count))
