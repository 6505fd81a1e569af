"""Copied regions, inside an array, across its border and beyond it, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.windows import Region
from penstock.operators.image._windows import copy_region, region_copy
from penstock.schema.image_chain import Pixels

CASES = 40


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", ["last", "first", "none"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_what_lies_outside_is_filled(dimensions: int, channels: str, dtype: type) -> None:
    rng = np.random.default_rng(dimensions)
    axis = {"last": dimensions - 1, "first": 0, "none": None}[channels]
    for _ in range(CASES):
        shape, anchor, extents = (
            tuple(rng.integers(low, high, dimensions).tolist()) for low, high in ((1, 7), (-8, 8), (1, 9))
        )
        region = Region(anchor, extents)
        source: np.ndarray = rng.integers(0, 100, shape).astype(dtype)
        fill = [float(value) for value in rng.integers(0, 120, 1 if axis is None else extents[axis])]
        spread = [-1 if each == axis else 1 for each in range(dimensions)]
        expected = np.broadcast_to(np.array(fill, dtype).reshape(spread), extents).copy()
        inside, place = region.overlap(shape)
        expected[place] = source[inside]
        # With `beside`, the array is a view of a larger one, so that its rows are not adjacent in memory.
        for beside in (0, 1):
            around: np.ndarray = np.full([extent + 2 * beside for extent in extents], 77, dtype)
            target = around[tuple(slice(beside, beside + extent) for extent in extents)]
            copy_region(source, region, fill, axis, target)
            np.testing.assert_array_equal(target, expected)
            assert around.astype(np.int64).sum() == expected.astype(np.int64).sum() + 77 * (around.size - target.size)
        computed = np.empty(extents, dtype)
        window = region_copy(region, shape, fill, axis)
        whole = Pixels(source, (0,) * dimensions)
        window.compute(None, whole, Region.whole(extents), computed)  # type: ignore[arg-type]
        np.testing.assert_array_equal(computed, expected)
