"""Seeds, streams and shuffles, compared with published and recorded outputs of their algorithms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.kernels.cpu import distributions, philox, shots
from penstock.kernels.random_crop import RandomCrop
from penstock.kernels.random_streams import (
    MinimalStandard,
    Stream,
    bounded,
    mersenne_twister,
    mersenne_twister_64,
    sample_stream,
    seed_sequence,
    seed_slots,
    std_shuffle,
    stream_from_state,
)
from penstock.kernels.random_streams import philox as draws_of

U = np.uint64


def test_the_published_vectors_of_philox() -> None:
    # Random123's known answers for philox4x32-10: counter and key of zeros, and of ones.
    ones = U(0xFFFFFFFFFFFFFFFF)
    assert [hex(w) for w in philox.block(U(0), U(0), U(0))] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert [hex(w) for w in philox.block(ones, ones, ones)] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


def test_draws_in_order_and_one_by_one_agree() -> None:
    stream = sample_stream(5, 12, 3)
    in_order = list(itertools.islice(draws_of(stream), 100))
    assert in_order == [philox.draw(stream.key, stream.stream, U(n)) for n in range(100)]


def test_a_given_state_names_the_stream() -> None:
    state = np.array([1, 2, 3, 0, 4, 5, 2], np.uint32)
    assert stream_from_state(state, 1) == Stream(U(1 | 2 << 32), U((4 | 5 << 32) + 65537), U(14))
    with pytest.raises(ValueError, match="7 words"):
        stream_from_state(state[:3], 0)


def test_seed_sequence() -> None:
    # Words that std::seed_seq{7} of the GNU C++ library generates.
    assert seed_sequence(7, 4).tolist() == [3058802511, 457619115, 2864960031, 537765756]
    assert seed_slots(7)[:2] == [1430822620, 2208556945]
    assert seed_slots(7 + 2**32) == seed_slots(7)


def test_mersenne_twister() -> None:
    # The C++ standard requires this as the 10000th output of a default-seeded std::mt19937.
    assert next(itertools.islice(mersenne_twister(5489), 9999, None)) == 4123659995


def test_mersenne_twister_64() -> None:
    # It requires this as the 10000th output of a default-seeded std::mt19937_64.
    assert next(itertools.islice(mersenne_twister_64(5489), 9999, None)) == 9981545732273789042


def test_minimal_standard() -> None:
    # It requires this as the 10000th output of std::minstd_rand0, seeded with 1.
    generator = MinimalStandard(0)
    generator.state = 1
    for _ in range(10000):
        generator.below(2)
    assert generator.state == 1043618065


@pytest.mark.parametrize(
    ("count", "order"),
    [(0, []), (1, [0]), (2, [1, 0]), (7, [3, 0, 2, 4, 5, 1, 6]), (10, [5, 9, 1, 6, 7, 2, 0, 4, 8, 3])],
)
def test_shuffles_are_those_of_the_gnu_library(count: int, order: list[int]) -> None:
    assert std_shuffle(range(count), mersenne_twister(524287)) == order


def test_shuffles_by_draws_of_64_bits() -> None:
    # DALI's order of the files between epochs.
    assert std_shuffle(range(6), mersenne_twister_64((1 << 32) + 2**33 + 5), bits=64) == [2, 0, 3, 1, 4, 5]
    assert std_shuffle(range(6), mersenne_twister_64((1 << 32) - 1), bits=64) == [5, 3, 2, 0, 4, 1]
    assert std_shuffle([7], mersenne_twister_64(1), bits=64) == [7]


def test_a_shuffle_too_long_for_pairs() -> None:
    order = std_shuffle(range(70001), mersenne_twister(524287))
    assert order[:5] == [14022, 67989, 4767, 37944, 42924]
    assert sorted(order) == list(range(70001))


def test_bounded_numbers_reject_the_biased_ones() -> None:
    assert bounded(iter([0, 2**31]), 3) == 1
    assert bounded(iter([0, 2**63]), 3, bits=64) == 1


@pytest.mark.parametrize("bound", [1, 2, 7, 2**31 + 5])
def test_bounded_numbers_agree_in_and_out_of_kernels(bound: int) -> None:
    stream = sample_stream(9, 0, 0)
    n, draws = U(0), draws_of(stream)
    for _ in range(20):
        number, n = (U(v) for v in philox.draw_below(stream.key, stream.stream, n, U(bound)))
        assert number == bounded(draws, bound)


def test_uniform_numbers_stay_below_the_end() -> None:
    out = np.empty(1, np.float32)
    for seed in range(200):
        distributions.fill_uniform(out, *sample_stream(seed, 0, 0), np.float32(0), np.float32(1))
        assert 0 <= out[0] < 1


def test_poisson_numbers_have_their_mean_and_variance() -> None:
    for mean in (0.5, 5.0, 11.9, 12.0, 40.0, 1000.0):
        numbers = np.empty(4000, np.float32)
        shots.replace_by_shots(numbers, np.full(4000, mean, np.float32), *sample_stream(1, 0, 0), np.float32(1))
        assert abs(numbers.mean() - mean) < 6 * (mean / 4000) ** 0.5
        assert abs(numbers.var() / mean - 1) < 0.2


def test_windows_lie_in_the_image_and_keep_their_ratio() -> None:
    crop = RandomCrop([0.1, 0.5], [0.5, 2.0])
    for index in range(100):
        y, x, h, w = crop.window(sample_stream(1, 0, index), 300, 400)
        assert 0 <= y <= 300 - h
        assert 0 <= x <= 400 - w
        assert 0.5 <= w / h <= 2
        assert 0.09 < h * w / (300 * 400) < 0.51


def test_an_image_without_pixels_has_an_empty_window() -> None:
    assert RandomCrop().window(sample_stream(1, 0, 0), 0, 7) == (0, 0, 0, 0)


@pytest.mark.parametrize("area", [[0.5, 0.2, 0.9], [0.5, 0.2], [float("nan"), 1.0]])
def test_ranges_of_windows_are_checked(area: list[float]) -> None:
    with pytest.raises(ValueError, match="random_area"):
        RandomCrop(area)


def test_windows_of_many_images_are_those_of_each() -> None:
    crop = RandomCrop([0.1, 0.9], [0.5, 2.0])
    extents = np.array([[480, 640], [1, 1], [3, 900], [900, 3], [77, 51]])
    streams = [sample_stream(9, 128, index) for index in range(len(extents))]
    windows = crop.windows(streams[0].key, np.array([s.stream for s in streams]), streams[0].start, extents)
    assert windows.tolist() == [list(crop.window(s, *shape)) for s, shape in zip(streams, extents.tolist())]


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_shots_do_not_depend_on_where_they_are_drawn_together(start: int) -> None:
    source = np.random.default_rng(1).integers(0, 256, 200, np.uint8)
    stream = sample_stream(5, 0, 0)
    together, alone = np.empty_like(source), np.empty_like(source)
    shots.replace_by_shots(together, source, stream.key, stream.stream, np.uint64(start), np.float32(20))
    for index in range(source.size):
        own, begin = slice(index, index + 1), np.uint64(start + philox.ELEMENT_STRIDE * index)
        shots.replace_by_shots(alone[own], source[own], stream.key, stream.stream, begin, np.float32(20))
    assert np.array_equal(together, alone)
