"""Properties of random operators; golden cases compare their numbers with DALI's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.graph import DataNode
from penstock.operators.random import _box_cropping


def batches(define: Any, batch_size: int = 8, iterations: int = 1, **settings: Any) -> list[np.ndarray]:
    settings = {"num_threads": 2, "device_id": None, "seed": 3} | settings
    pipeline = pipeline_def(define, batch_size=batch_size, **settings)()
    pipeline.build()
    return [np.array(sample) for _ in range(iterations) for sample in pipeline.run()[0]]


def test_threads_and_prefetching_do_not_matter() -> None:
    def define() -> Any:
        return fn.random.normal(shape=[100])

    one = batches(define, iterations=3, num_threads=1, prefetch_queue_depth=1)
    np.testing.assert_array_equal(one, batches(define, iterations=3, num_threads=4, prefetch_queue_depth=3))


def test_batches_differ_and_are_those_of_larger_ones() -> None:
    numbers = batches(lambda: fn.random.uniform(), batch_size=4, iterations=2)
    assert len({float(number) for number in numbers}) == 8


def test_beta_with_both_parameters_below_one_has_its_moments() -> None:
    alpha, beta = 0.2, 0.6
    numbers = np.concatenate(batches(lambda: fn.random.beta(alpha=alpha, beta=beta, shape=[20000])))
    total = alpha + beta
    assert numbers.min() >= 0
    assert numbers.max() <= 1
    assert abs(numbers.mean() - alpha / total) < 0.005
    assert abs(numbers.var() - alpha * beta / (total**2 * (total + 1))) < 0.005


def test_a_range_of_values_per_frame_is_a_range() -> None:
    (number,) = batches(
        lambda: fn.random.uniform(range=fn.external_source(lambda: [np.float32([2, 2.5])], layout="F")), batch_size=1
    )
    assert 2 <= number < 2.5


def test_permutations_contain_each_sample_once() -> None:
    numbers = batches(lambda: fn.batch_permutation(no_fixed_points=True), batch_size=50)
    assert sorted(int(n) for n in numbers) == list(range(50))
    assert all(int(n) != i for i, n in enumerate(numbers))


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda: fn.random.uniform(range=[3, 1]), "Invalid range"),
        (lambda: fn.random.uniform(range=[1, 2, 3]), "two numbers"),
        (lambda: fn.random.uniform(dtype=types.BOOL), "not supported"),
        (lambda: fn.random.uniform(shape=[-1]), "negative"),
        (lambda: fn.random.choice(2, p=[0.5, 0.6]), "sum up to 1"),
        (lambda: fn.random.choice(3, p=[0.5, 0.5]), "each of the 3"),
        (lambda: fn.random.choice(0), "at least one"),
        (lambda: fn.random.beta(alpha=-1), "positive"),
        (lambda: fn.noise.salt_and_pepper(np.float32([1]), prob=1.3), "probability"),
        (lambda: fn.random_crop_generator(np.float32([4, 5])), "Only integers"),
        (lambda: fn.random_crop_generator(np.int64([4])), "2 or 3 numbers"),
        (lambda: fn.random_crop_generator(np.int64([4, 4]), random_area=[0.5, 0.2])[0], "empty"),
        (lambda: fn.roi_random_crop(roi_start=[0], crop_shape=[1]), "not both"),
        (lambda: fn.roi_random_crop(roi_start=[0], roi_end=[9], crop_shape=[9], in_shape=[5]), "larger than the input"),
    ],
)
def test_wrong_arguments_are_refused(define: Any, message: str) -> None:
    def first() -> Any:
        outputs = define()
        return outputs[0] if isinstance(outputs, (list, tuple)) else outputs

    with pytest.raises(RuntimeError, match=message):
        batches(first)


def test_boxes_that_no_window_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no window fits, the search fails with an error that names the sample; boxes with NaN are refused before the search."""
    monkeypatch.setattr(_box_cropping, "MAX_DRAWS_WITHOUT_LIMIT", 1000)
    large, tiny, unknown = ([[0.1, 0.1, end, 0.9]] for end in (0.9, 0.1001, float("nan")))

    def crop(second: Any, **limit: int) -> Any:
        boxes = fn.external_source(lambda: [np.float32(large), np.float32(second)])
        return fn.random_bbox_crop(
            boxes, bbox_layout="xyXY", allow_no_crop=False, thresholds=[0.5], scaling=[0.8, 1.0], seed=1, **limit
        )[0]

    with pytest.raises(RuntimeError, match=r"None of 1,000 windows met the conditions(.|\n)*processing sample #1 "):
        batches(lambda: crop(tiny), batch_size=2)
    with pytest.raises(
        RuntimeError, match=r"\[0\.1\d*, 0\.1\d*, nan, 0\.8\d*\] is out of bounds(.|\n)*processing sample #1 "
    ):
        batches(lambda: crop(unknown), batch_size=2)
    with pytest.warns(UserWarning, match=r"attempted 2000 times"):
        batches(lambda: crop(tiny, total_num_attempts=2000), batch_size=2)
    assert len(batches(lambda: crop(large), batch_size=2)) == 2


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT32, types.FLOAT, types.FLOAT64])
def test_numbers_do_not_depend_on_how_many_are_drawn(dtype: types.DALIDataType) -> None:
    """Few numbers are drawn for all samples in one call, and many numbers sample by sample: the first numbers are the same."""

    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def define(count: int) -> tuple[DataNode, ...]:
        flips = types.INT32 if dtype in (types.FLOAT, types.FLOAT64) else dtype
        return (
            fn.random.uniform(range=[-3, 40], shape=[count], dtype=dtype, seed=1),
            fn.random.uniform(values=[1, 5, 9], shape=[count], dtype=dtype, seed=2),
            fn.random.coin_flip(shape=[count], dtype=flips, seed=3),
        )

    few, many = define(7), define(5000)
    for _ in range(2):
        for one, other in zip(few.run(), many.run()):
            for small, large in zip(one, other):
                np.testing.assert_array_equal(np.array(small), np.array(large)[:7])
