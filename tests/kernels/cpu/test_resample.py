"""Fused kernels give the results of the separate steps, and computing a part gives the same values as computing the whole."""

from __future__ import annotations

import numpy as np
import pytest

import penstock
from penstock import fn
from penstock.core.chains import Chain, StageRecords, array_part, compute_part
from penstock.kernels.resize_shapes import plan_axes
from penstock.kernels.windows import Region
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, resampling_records
from penstock.operators.image._resampling import resample
from penstock.operators.image._stores import (
    ChannelValues,
    CmnPlan,
    CmnPlans,
    NormalizingStore,
    StoredAs,
    store_records,
    stored_values,
)
from penstock.operators.image._windows import Regions
from penstock.schema.image_chain import Pixels
from penstock.types import DALIInterpType

LINEAR, CUBIC, NEAREST = DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC, DALIInterpType.INTERP_NN


def image(shape: tuple[int, ...], dtype: type = np.uint8) -> np.ndarray:
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def plans(shapes: list[tuple[int, int]], sizes: list[tuple[int, int]], kind: DALIInterpType) -> ResamplePlans:
    extents = np.array(shapes)
    given, starts, ends = plan_axes(extents, np.array(sizes, np.float64))
    return ResamplePlans(extents, given, starts, ends, np.full(extents.shape, int(kind)), True)


def whole(shape: tuple[int, int], size: tuple[int, int], kind: DALIInterpType) -> ResamplePlan:
    return plans([shape], [size], kind)[0]


def by_definition(source: np.ndarray, plan: ResamplePlan) -> np.ndarray:
    """Return the source multiplied by the matrices of weights of both axes, in double precision."""
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


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("size", [(40, 30), (130, 150), (99, 30), (40, 91), (3, 3), (1, 200)])
@pytest.mark.parametrize("kind", [LINEAR, CUBIC, NEAREST])
def test_a_part_equals_the_part_of_the_whole(size: tuple[int, int], kind: DALIInterpType, dtype: type) -> None:
    source = image((100, 90, 3), dtype)
    plan = whole((100, 90), size, kind)
    entire = np.empty((*size, 3), dtype)
    resample(source, entire, 0, plan)
    stage = plan.records(source.shape, 0, source.dtype, entire.dtype)
    for top, left in ((0, 0), (size[0] // 3, size[1] // 2)):
        part = np.s_[top : top + 17, left : left + 9]
        target = np.empty_like(entire[part])
        compute_part(stage, array_part(source, (0, 0, 0)), array_part(target, (top, left, 0)))
        np.testing.assert_array_equal(target, entire[part])
        # The result is the same if the source is cut to the region that is read.
        rows, columns = (
            plan.passes.span(axis, start, extent) for axis, start, extent in zip(range(2), (top, left), target.shape)
        )
        cut, again = source[slice(*rows), slice(*columns)].copy(), np.empty_like(target)
        compute_part(stage, array_part(cut, (rows[0], columns[0], 0)), array_part(again, (top, left, 0)))
        np.testing.assert_array_equal(again, target)


def run(sources: list[np.ndarray], stages: list[StageRecords], targets: list[np.ndarray]) -> Chain:
    addresses = [np.array([array.ctypes.data for array in arrays]) for arrays in (sources, targets)]
    shapes = np.array([source.shape for source in sources])
    chain = Chain.of(addresses[0], shapes, sources[0].itemsize, stages, addresses[1])
    chain.run(2)
    return chain


@pytest.mark.parametrize("kind", [LINEAR, CUBIC, NEAREST])
def test_a_batch_equals_its_images(kind: DALIInterpType) -> None:
    shapes, sizes = [(50, 60), (20, 7), (9, 90), (1, 1)], [(17, 23), (33, 12), (9, 200), (3, 2)]
    sources = [image((*shape, 3)) for shape in shapes]
    alone = [np.empty((*size, 3), np.uint8) for size in sizes]
    for source, target, shape, size in zip(sources, alone, shapes, sizes):
        resample(source, target, 0, whole(shape, size, kind))
    batch = plans(shapes, sizes, kind)
    together = [np.empty_like(target) for target in alone]
    stage = resampling_records(
        batch, np.array([source.shape for source in sources]), 0, sources[0].dtype, alone[0].dtype
    )
    run(sources, [stage], together)
    for one, other in zip(together, alone):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [LINEAR, CUBIC, NEAREST])
def test_images_with_one_filter_share_it(kind: DALIInterpType) -> None:
    sources = [image((50, 60, 3)), image((50, 60, 3))[::-1].copy()]
    alone = [np.empty((17, 23, 3), np.uint8) for _ in sources]
    for source, target in zip(sources, alone):
        resample(source, target, 0, whole((50, 60), (17, 23), kind))
    batch = plans([(50, 60)] * 2, [(17, 23)] * 2, kind)
    stage = resampling_records(batch, np.array([(50, 60, 3)] * 2), 0, sources[0].dtype, sources[0].dtype)
    assert stage.records["starts"].all()
    together = [np.empty_like(target) for target in alone]
    run(sources, [stage], together)
    for one, other in zip(together, alone):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("dtype", "between", "output"),
    [
        (np.uint8, np.uint8, np.float32),
        (np.uint8, np.float32, np.float32),
        (np.uint8, np.uint8, np.int8),
        (np.int16, np.int16, np.float32),
        (np.float32, np.float32, np.float32),
    ],
)
@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("size", [(40, 30), (130, 150)])
@pytest.mark.parametrize("anchor", [(3, 10), (-2, 20)])
def test_a_chain_equals_its_steps(
    dtype: type, between: type, output: type, planar: bool, size: tuple[int, int], anchor: tuple[int, int]
) -> None:
    source = image((100, 90, 3), dtype)
    plan = whole((100, 90), size, CUBIC)
    resized = np.empty((*size, 3), between)
    resample(source, resized, 0, plan)
    mean, factor, fill = np.float32([3, 100.5, 127]), np.float32([0.3, 1.1, 0.7]), np.full(4, 9, np.float32)
    shape = (4, 17, 20) if planar else (17, 20, 4)
    kept, region = StoredAs("HWC", (2, 0, 1) if planar else (0, 1, 2)), Region((*anchor, 0), (17, 20, 3))
    expected, target = np.empty(shape, output), np.empty(shape, output)
    store = NormalizingStore(CmnPlan(region, True, mean, factor, 5.0, 4, fill), kept, resized.shape, shape)
    store.compute(None, Pixels(resized, (0, 0, 0)), Region.whole(shape), expected)
    stores = CmnPlans(
        Regions(np.array([region.anchor]), np.array([region.extents])),
        np.array([True]),
        [ChannelValues(mean, factor, 5.0, 4, fill)],
        np.zeros(1, np.int64),
    )
    values = stored_values(stores.values, target.dtype)
    stages = [
        plan.records(source.shape, 0, source.dtype, resized.dtype),
        store_records(stores, kept, np.array([resized.shape]), resized.dtype, target.dtype, values),
    ]
    chain = run([source], stages, [target])
    np.testing.assert_array_equal(target, expected)
    # The result is the same if only this region of the source is in memory.
    (read,) = chain.read_regions()
    place = tuple(slice(a, a + e) for a, e in zip(read["anchor"][:3], read["extents"][:3]))
    part = source[place].copy()
    target[:] = 0
    chain.run_sample(0, array_part(part, tuple(read["anchor"][:3])))
    np.testing.assert_array_equal(target, expected)


def test_axes_stay_put_where_the_size_is_the_same() -> None:
    source = image((31, 47, 3))
    pipeline = penstock.pipeline_def(batch_size=1, num_threads=1, device_id=None)(
        lambda: fn.resize(fn.external_source(lambda: [source], layout="HWC"), size=[31, 47])
    )()
    np.testing.assert_array_equal(np.array(pipeline.run()[0][0]), source)
