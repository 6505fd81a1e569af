"""Fused kernels equal the separate steps, and partial results equal parts of the whole."""

from __future__ import annotations

import numpy as np
import pytest

import penstock
from penstock import fn
from penstock.kernels.cpu.resample import Normalization
from penstock.kernels.resize_shapes import plan_axes
from penstock.kernels.windows import Region
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Window
from penstock.operators.image._resampling import resample, resample_and_normalize
from penstock.operators.image._stores import CmnPlan, NormalizingStore, StoredAs
from penstock.schema.image_chain import Pixels
from penstock.types import DALIInterpType

LINEAR, CUBIC, NEAREST = DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC, DALIInterpType.INTERP_NN


def image(shape: tuple[int, ...], dtype: type = np.uint8) -> np.ndarray:
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def whole(shape: tuple[int, ...], size: tuple[int, ...], kind: DALIInterpType) -> ResamplePlan:
    extents = np.array([shape[: len(size)]])
    sizes, starts, ends = plan_axes(extents, np.array([size], np.float64))
    return ResamplePlans(extents, sizes, starts, ends, np.full(extents.shape, int(kind)), True)[0]


def by_definition(source: np.ndarray, plan: ResamplePlan) -> np.ndarray:
    """Both axes as matrices, in double precision."""
    result = source.astype(np.float64)
    for axis in range(2):
        taps = plan.taps_of(axis)
        matrix = np.zeros((len(taps.starts), source.shape[axis]))
        for row, (start, weights) in enumerate(zip(taps.starts, taps.weights)):
            np.add.at(matrix[row], np.clip(start + np.arange(len(weights)), taps.low, taps.high - 1), weights)
        result = np.moveaxis(np.tensordot(matrix, result, (1, axis)), 0, axis)
    return result


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize(
    ("shape", "size"), [((50, 60), (17, 23)), ((20, 7), (33, 12)), ((9, 90), (9, 200)), ((1, 1), (3, 2))]
)
@pytest.mark.parametrize("kind", [LINEAR, CUBIC])
def test_sums_what_the_filters_name(
    channels: int, shape: tuple[int, int], size: tuple[int, int], kind: DALIInterpType
) -> None:
    source = image((*shape, channels), np.float32)
    plan = whole(shape, size, kind)
    target = np.empty((*size, channels), np.float32)
    resample(source, target, 0, plan)
    np.testing.assert_allclose(target, by_definition(source, plan), atol=2e-6)


@pytest.mark.parametrize("size", [(40, 30), (130, 150)])
@pytest.mark.parametrize("kind", [LINEAR, CUBIC, NEAREST])
def test_a_window_equals_the_part_of_the_whole(size: tuple[int, int], kind: DALIInterpType) -> None:
    source = image((100, 90, 3))
    plan = whole((100, 90), size, kind)
    entire = np.empty((*size, 3), np.uint8)
    resample(source, entire, 0, plan)
    part = plan.cropped([Window(3, 20), Window(10, 15, mirrored=True)])
    target = np.empty((17, 5, 3), np.uint8)
    resample(source, target, 0, part)
    np.testing.assert_array_equal(target, entire[3:20, 10:15][:, ::-1])
    again = part.cropped([Window(1, 3), Window(0, 2, mirrored=True)])
    assert again.windows == (Window(4, 6), Window(13, 15))


@pytest.mark.parametrize(
    ("dtype", "between", "output"),
    [
        (np.uint8, np.uint8, np.float32),
        (np.uint8, np.float32, np.float32),
        (np.uint8, np.uint8, np.float16),
        (np.uint8, np.uint8, np.int8),
        (np.uint8, np.uint8, np.uint8),
        (np.int16, np.int16, np.float32),
        (np.float32, np.float32, np.float32),
    ],
)
@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("added", [0, 1])
@pytest.mark.parametrize("size", [(40, 30), (130, 150)])
def test_fused_equals_its_steps(
    dtype: type, between: type, output: type, planar: bool, added: int, size: tuple[int, int]
) -> None:
    source = image((100, 90, 3), dtype)
    plan = whole((100, 90), size, CUBIC)
    resized = np.empty((*size, 3), between)
    resample(source, resized, 0, plan)
    mean, factor = np.float32([3, 100.5, 127]), np.float32([0.3, 1.1, 0.7])
    channels = 3 + added
    shape = (channels, 17, 20) if planar else (17, 20, channels)
    steps = CmnPlan(
        Region((3, 10, 0), (17, 20, 3)), True, mean, factor, 5.0, channels, np.full(channels, 9, np.float32)
    )
    expected = np.empty(shape, output)
    store = NormalizingStore(steps, StoredAs("HWC", (2, 0, 1) if planar else (0, 1, 2)), resized.shape, shape)
    store.compute(None, Pixels(resized, (0, 0, 0)), Region.whole(shape), expected)
    part = plan.cropped([Window(3, 20), Window(10, 30, mirrored=True)])
    target = np.empty(shape, output)
    normalization = Normalization(mean, factor, 5.0, planar, 9.0)
    resample_and_normalize(source, target, part, np.dtype(between), normalization)
    np.testing.assert_array_equal(target, expected)


def test_axes_stay_put_where_the_size_is_the_same() -> None:
    source = image((31, 47, 3))
    pipeline = penstock.pipeline_def(batch_size=1, num_threads=1, device_id=None)(
        lambda: fn.resize(fn.external_source(lambda: [source], layout="HWC"), size=[31, 47])
    )()
    np.testing.assert_array_equal(np.array(pipeline.run()[0][0]), source)
