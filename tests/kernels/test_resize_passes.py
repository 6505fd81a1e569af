"""The passes of a resize: their order, their windows and weights, and which values are rounded half away from zero."""

from __future__ import annotations

import numpy as np
import pytest

import penstock
from penstock import fn
from penstock.kernels.resize_passes import Passes, filter_table, passes
from penstock.kernels.resize_shapes import AxisPlan
from penstock.types import DALIInterpType

LINEAR = DALIInterpType.INTERP_LINEAR
FILTERS = [kind for kind in DALIInterpType.__members__.values() if kind != DALIInterpType.INTERP_NN]


def whole(shape: tuple[int, ...], size: tuple[int, ...], kind: DALIInterpType = LINEAR) -> Passes:
    axes = tuple(AxisPlan(old, new, 0.0, float(old)) for old, new in zip(shape, size))
    return passes(axes, (kind,) * len(shape), True)


@pytest.mark.parametrize(
    ("shape", "size", "order"),
    [
        ((100, 100), (10, 100), (0, 1)),
        ((100, 100), (100, 10), (1, 0)),
        ((40, 30), (100, 90), (1, 0)),
        ((853, 1280), (256, 384), (0, 1)),
        ((20, 20, 20), (40, 5, 20), (1, 2, 0)),
    ],
)
def test_the_cheapest_order_is_taken(shape: tuple[int, ...], size: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert whole(shape, size).order == order


@pytest.mark.parametrize("kind", FILTERS)
def test_tables_are_symmetric_and_their_middle_is_one(kind: DALIInterpType) -> None:
    table = filter_table(kind)
    np.testing.assert_array_equal(table, table[::-1])
    assert table[len(table) // 2] == 1


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize(("size_in", "size_out"), [(50, 17), (7, 40), (1, 3), (9, 9), (20000, 1)])
def test_weights_add_up_to_one_and_windows_are_centred(kind: DALIInterpType, size_in: int, size_out: int) -> None:
    table = whole((size_in, 4), (size_out, 4), kind).taps(0, range(size_out))
    np.testing.assert_allclose(table.weights.sum(axis=1), 1, atol=1e-5)
    centres = (np.arange(size_out) + 0.5) * size_in / size_out - 0.5
    middles = table.starts + (table.weights.shape[1] - 1) / 2
    assert np.abs(middles - centres).max() <= 1


def test_what_is_left_over_of_lines_whose_height_is_resampled_last() -> None:
    grown = whole((40, 30), (100, 90))

    def ranges(dtype: type) -> list[list[int]]:
        return [[begin, end] for begin, end in grown.rests(3, np.dtype(dtype)).tolist() if begin < end]

    # A line has 270 bytes, of which 16 * 16 are rounded in groups.
    assert ranges(np.uint8) == [[256, 270]]
    assert ranges(np.int16) == [[264, 270]]
    assert ranges(np.float32) == []


def test_halves_are_rounded_to_even_numbers_but_for_what_is_left_over() -> None:
    image = np.repeat(np.array([0, 1], np.uint8), 20).reshape(2, 20, 1)
    pipeline = penstock.pipeline_def(batch_size=1, num_threads=1, device_id=None)(
        lambda: fn.resize(fn.external_source(lambda: [image], layout="HWC"), size=[1, 20])
    )()
    # Left over: the first column, whose window reaches beyond the edge, and all but 16 of the other 19. DALI 2.4 gives the same.
    expected = np.zeros(20, np.uint8)
    expected[[0, 17, 18, 19]] = 1
    np.testing.assert_array_equal(np.array(pipeline.run()[0][0]).ravel(), expected)
