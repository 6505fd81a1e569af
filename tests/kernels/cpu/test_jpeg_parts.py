"""The parts of a batch of JPEGs that are in a GPU's memory at the same time, and their layout."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu.jpeg.parts import cut, lay_out

RNG = np.random.default_rng(7)


def shares_of(sizes: np.ndarray, first: int, last: int, most: int) -> list[tuple[int, int]]:
    ranges = np.empty((len(sizes), 2), np.int64)
    return [(begin, end) for begin, end in ranges[: cut(sizes, first, last, most, ranges)].tolist()]


@pytest.mark.parametrize("most", [1, 10, 100, 1000, 1 << 40])
@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_shares_are_about_equal(count: int, most: int) -> None:
    sizes = RNG.integers(1, 100, count)
    for first, last in ((0, count), (count // 2, count)):
        shares = shares_of(sizes, first, last, most)
        assert [begin for begin, _ in shares] == [first, *(end for _, end in shares[:-1])]
        assert shares[-1][1] == last
        assert all(begin < end for begin, end in shares)
        most_of_one = int(sizes[first:last].max())
        for begin, end in shares:
            assert sizes[begin:end].sum() <= max(most, most // 2 + most_of_one)
        if sizes[first:last].sum() <= most:
            assert len(shares) == 1


def test_things_of_no_size_are_one_share() -> None:
    assert shares_of(np.zeros(3, np.int64), 0, 3, 0) == [(0, 3)]


def test_nothing_of_a_part_lies_where_something_else_does() -> None:
    sizes, samples = RNG.integers(1, 100, (2, 40))
    # Images 15 to 17 belong to no part.
    parts = np.array([(0, 15), (18, 19), (19, 40)])
    sources, planes, rooms, ranges = np.zeros(40, int), np.zeros(40, int), np.zeros(3, int), np.zeros((40, 2), int)
    groups = ranges[: lay_out(sizes, samples, parts, 300, sources, planes, rooms, ranges)].tolist()
    assert [image for begin, end in groups for image in range(begin, end)] == [*range(15), *range(18, 40)]
    for (first, last), room in zip(parts.tolist(), rooms.tolist(), strict=True):
        own = [(begin, end) for begin, end in groups if first <= begin < last]
        assert own[-1][1] == last
        for begin, end in own:
            taken = np.zeros(room, int)
            for place, size in [
                *zip(sources[first:last], sizes[first:last], strict=True),
                *zip(planes[begin:end], samples[begin:end], strict=True),
            ]:
                assert 0 <= place <= place + size <= room
                taken[place : place + size] += 1
            assert taken.max() == 1
