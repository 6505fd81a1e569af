"""Reductions of batches, compared with NumPy."""

from __future__ import annotations

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda.reduction import Reduction, reduce_axes

RNG = np.random.default_rng(4)


def kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 1), (2,), (1,), (0, 2), ()])
def test_sums_of_samples_of_different_shapes(axes: tuple[int, ...]) -> None:
    sources = [RNG.integers(0, 256, shape, np.uint8) for shape in ((70, 90, 3), (1, 2, 3), (5, 1, 600))]
    targets = [xp.empty(kept(source.shape, axes), np.uint64) for source in sources]
    jobs = [Reduction(xp.put(source), target, axes) for source, target in zip(sources, targets)]
    reduce_axes(jobs, value=np.uint64, total=np.uint64)
    for source, target in zip(sources, targets):
        np.testing.assert_array_equal(target, source.sum(axis=axes, dtype=np.uint64))


def test_deviation_from_one_mean_and_from_one_for_each() -> None:
    source = RNG.random((40, 50, 3), np.float32)
    means = [np.float32([0.4]), source.mean(axis=(0, 1))]
    targets = [xp.empty((3,), np.float32) for _ in means]
    jobs = [Reduction(xp.put(source), t, (0, 1), xp.put(m), 1999.0, 0.5) for m, t in zip(means, targets)]
    reduce_axes(jobs, squares=True, root=True)
    for mean, target in zip(means, targets):
        expected = np.sqrt(((source - mean) ** 2).sum(axis=(0, 1), dtype=np.float64) / 1999 + 0.5)
        np.testing.assert_allclose(target, expected, rtol=1e-6)


def test_extremes_pass_over_nan() -> None:
    source = np.float32([[3, np.nan, -2], [np.inf, 5, 7]])
    least, greatest = xp.empty((2,), np.float32), xp.empty((2,), np.float32)
    reduce_axes([Reduction(xp.put(source), least, (1,))], "Least", total=np.float32)
    reduce_axes([Reduction(xp.put(source), greatest, (1,))], "Greatest", total=np.float32)
    assert least.tolist() == [-2, 5]
    assert greatest.tolist() == [3, np.inf]


def test_of_nothing() -> None:
    target = xp.empty((3,), np.float32)
    reduce_axes([Reduction(xp.empty((0, 3)), target, (0,))], total=np.float64)
    assert target.tolist() == [0, 0, 0]


@pytest.mark.parametrize("merge", ["GreatestPositive", "Add"])
def test_long_arrays_in_parts(merge: str) -> None:
    arrays = [RNG.standard_normal(count).astype(np.float32) for count in (0, 1, 8191, 20_001)]
    arrays.append(-np.ones(10, np.float32))
    targets = [xp.empty((), np.float32) for _ in arrays]
    reduce_axes([Reduction(xp.put(array), t, (0,)) for array, t in zip(arrays, targets)], merge, total=np.float32)
    expected = [array.sum() if merge == "Add" else array.max(initial=0) for array in arrays]
    np.testing.assert_allclose(targets, expected, rtol=1e-5, atol=1e-4)


def test_deviations_in_parts() -> None:
    source = RNG.random((300, 100, 3), np.float32)
    target = xp.empty((3,), np.float32)
    mean = source.mean(axis=(0, 1))
    job = Reduction(xp.put(source), target, (0, 1), xp.put(mean), 29_999.0, 0.5)
    reduce_axes([job], squares=True, root=True)
    np.testing.assert_allclose(target, np.sqrt(source.var(axis=(0, 1), ddof=1) + 0.5), rtol=1e-6)


def test_mean_of_many_integers_and_of_none() -> None:
    sources = [RNG.integers(-90, 100, (90, 100), np.int16), np.zeros((0, 100), np.int16)]
    targets = [xp.empty((), np.int64) for _ in sources]
    jobs = [Reduction(xp.put(s), target, (0, 1), divisor=float(s.size)) for s, target in zip(sources, targets)]
    reduce_axes(jobs, value=np.int64, total=np.int64)
    assert [int(target) for target in targets] == [int(sources[0].sum() / 9000), 0]
