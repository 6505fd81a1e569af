"""Sizes that images are resized to: positive, within their bounds, with the requested side, and the same in batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels.fitted_sizes import SizeArguments, fitted
from penstock.kernels.resize_shapes import plan_axes, round_half_away, torchvision_sizes

sides = st.integers(1, 5000)
images = st.lists(st.tuples(sides, sides), min_size=1, max_size=6)


@settings(derandomize=True, deadline=None)
@given(images, st.integers(1, 2000), st.sampled_from(["not_smaller", "not_larger"]))
def test_torchvisions_sizes_give_one_side_and_keep_the_ratio(
    shapes: list[tuple[int, int]], side: int, mode: str
) -> None:
    extents = np.array(shapes, np.float64)
    sizes = torchvision_sizes(extents, np.full((1, 2), float(side)), mode, [])
    given_side = sizes.min(axis=1) if mode == "not_smaller" else sizes.max(axis=1)
    assert (given_side == side).all()
    exact = extents * (side / (extents.min(axis=1) if mode == "not_smaller" else extents.max(axis=1)))[:, None]
    assert (np.abs(sizes - exact) <= 1).all()
    # Sizes in a batch equal those of single images.
    alone = [
        torchvision_sizes(extents[i : i + 1], np.full((1, 2), float(side)), mode, [])[0] for i in range(len(shapes))
    ]
    np.testing.assert_array_equal(sizes, alone)


@settings(derandomize=True, deadline=None)
@given(images, st.integers(1, 2000), st.integers(1, 2000))
def test_the_longest_side_is_limited(shapes: list[tuple[int, int]], side: int, most: int) -> None:
    sizes = torchvision_sizes(np.array(shapes, np.float64), np.full((1, 2), float(side)), "not_smaller", [most])
    assert (sizes.max(axis=1) <= max(most, 1)).all()
    assert (sizes >= 1).all()


@settings(derandomize=True, deadline=None)
@given(images, sides, st.sampled_from(["not_smaller", "not_larger"]))
def test_axes_are_planned_alike_alone_and_in_batches(shapes: list[tuple[int, int]], side: int, mode: str) -> None:
    extents = np.array(shapes, np.int64)
    together = plan_axes(extents, np.full((1, 2), float(side)), mode)
    for index in range(len(shapes)):
        alone = plan_axes(extents[index : index + 1], np.full((1, 2), float(side)), mode)
        for column, row in zip(together, alone, strict=True):
            np.testing.assert_array_equal(column[index], row[0])
    sizes, starts, ends = together
    assert (sizes.min(axis=1) == side).all() if mode == "not_smaller" else (sizes.max(axis=1) == side).all()
    assert (starts < ends).all()


@settings(derandomize=True, deadline=None)
@given(sides, sides, st.sampled_from([14, 16, 28, 32]), st.integers(1, 20), st.integers(1, 40))
def test_pixels_of_qwens_sizes_are_within_their_bounds(
    height: int, width: int, factor: int, least: int, more: int
) -> None:
    small, large = least * factor * factor, (least + 10 * more) * factor * factor
    if max(height, width) > 200 * min(height, width):
        return
    fit = fitted("qwen2-vl", height, width, SizeArguments(factor=factor, least=small, most=large))
    assert fit.height % factor == fit.width % factor == 0
    # No side is shorter than the factor, so a very long and narrow image may have more pixels than allowed.
    assert fit.height * fit.width <= large or factor in fit[:2]


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([14, 16, 28, 32]))
def test_images_that_have_qwens_size_keep_it(rows: int, columns: int, factor: int) -> None:
    height, width = rows * factor, columns * factor
    fit = fitted("qwen2-vl", height, width, SizeArguments(factor=factor, least=height * width, most=height * width))
    assert fit[:2] == (height, width)


@settings(derandomize=True, deadline=None)
@given(st.integers(-(10**6), 10**6))
def test_halves_go_away_from_zero(number: int) -> None:
    assert round_half_away(number + 0.5) == (number + 1 if number >= 0 else number)
    assert round_half_away(float(number)) == number
