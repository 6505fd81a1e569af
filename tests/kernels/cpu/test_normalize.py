"""Kernels for blocks of pixels give the results of plain arithmetic for every layout, type and direction."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.kernels.windows import Region
from penstock.operators.image._stores import CmnPlan, NormalizingStore, StoredAs
from penstock.schema.image_chain import Pixels

MEAN, FACTOR, SHIFT = np.float32([3.5, 40, -7]), np.float32([0.25, 1.1, 3]), np.float32(0.3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32])
@pytest.mark.parametrize("width", [5, 8, 13, 40])
def test_planes_of_pixels(dtype: type, width: int) -> None:
    data = np.random.default_rng(0).integers(0, 127, (9, 60, 3)).astype(dtype)
    for mirror, layout, channels in itertools.product((False, True), ("HWC", "CHW"), (1, 3)):
        source = data[..., :channels]
        region = Region((2, 11, 0), (6, width, channels))
        window = source[2:8, 11 : 11 + width][:, :: -1 if mirror else 1].transpose(2, 0, 1).astype(np.float32)
        expected = (window - MEAN[:channels, None, None]) * FACTOR[:channels, None, None] + SHIFT
        permutation = [2, 0, 1]
        if layout == "CHW":
            source = np.ascontiguousarray(source.transpose(2, 0, 1))
            region = Region((0, 2, 11), (channels, 6, width))
            permutation = [0, 1, 2]
        plan = CmnPlan(region, mirror, MEAN[:channels], FACTOR[:channels], float(SHIFT), channels, np.zeros(channels))
        target = np.full((channels, 6, width), np.nan, np.float32)
        store = NormalizingStore(plan, StoredAs(layout, tuple(permutation)), source.shape, target.shape)
        store.compute(None, Pixels(source, (0, 0, 0)), Region.whole(target.shape), target)
        np.testing.assert_array_equal(target, expected)
