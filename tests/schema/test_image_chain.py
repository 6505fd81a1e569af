"""Parts of a stage's output, as computed by the default implementation of `compute`."""

from __future__ import annotations

import pytest

from penstock.kernels.windows import Region
from penstock.schema.image_chain import Stage

PART = Region((2, 0, 0), (3, 7, 3))


class _InParts(Stage):
    shape = (5, 7, 3)


class _Whole(_InParts):
    is_whole = True


def test_a_part_is_computed_alone() -> None:
    assert _InParts().covers(PART) == PART


def test_everything_is_computed_where_a_part_costs_as_much() -> None:
    assert _Whole().covers(PART) == Region((0, 0, 0), (5, 7, 3))


@pytest.mark.parametrize("shape", [(), (0,), (4, 6), (2, 3, 4, 1)])
def test_a_whole_region_is_all_of_an_array(shape: tuple[int, ...]) -> None:
    whole = Region.whole(shape)
    everything = tuple(slice(0, size) for size in shape)
    assert whole.inside(shape)
    assert whole.overlap(shape) == (everything, everything)
