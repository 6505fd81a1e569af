"""Resampling compared with filter matrices, and resampling fused with later steps compared with separate steps."""

from __future__ import annotations

from collections.abc import Sequence

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda.launch import locate
from penstock.kernels.cuda.resample import ImageResampling, resample_axes, resample_grouped
from penstock.kernels.cuda.window import WindowCopy, copy_windows
from penstock.kernels.filters import Taps, taps
from penstock.kernels.resize_shapes import AxisPlan
from penstock.types import INTERP_CUBIC, INTERP_LANCZOS3, INTERP_LINEAR, INTERP_TRIANGULAR, DALIInterpType

RNG = np.random.default_rng(3)
MEAN, FACTOR = np.float32([120, 110, 100]), np.float32([0.017, 0.018, 0.019])


def pixels(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, np.uint8)


def axis(size_in: int, size_out: int, kind: DALIInterpType = INTERP_LINEAR) -> Taps:
    return taps(AxisPlan(size_in, size_out, 0.0, float(size_in)), kind, True)


def matrix(table: Taps, size: int) -> np.ndarray:
    """Return the table of a filter as a matrix of shape (outputs, inputs)."""
    dense = np.zeros((len(table.starts), size + table.weights.shape[1]))
    for row, (start, weights) in enumerate(zip(table.starts, table.weights)):
        dense[row, start : start + len(weights)] += weights
    return dense[:, :size]


def expected(source: np.ndarray, vertical: Taps, horizontal: Taps) -> np.ndarray:
    rows, columns = matrix(vertical, source.shape[0]), matrix(horizontal, source.shape[1])
    return np.einsum("yi,xj,ijc->yxc", rows, columns, source.astype(np.float64), optimize=True)


def resample_images(jobs: Sequence[ImageResampling], between: np.dtype | None = None) -> None:
    """Resample images of different sizes and plans in one launch."""
    places = [[locate(array) for array in arrays] for arrays in zip(*((job.source, job.target) for job in jobs))]
    resample_grouped(*places, jobs, lambda job, *_: job, between)


@pytest.mark.parametrize("kind", [INTERP_LINEAR, INTERP_CUBIC, INTERP_LANCZOS3, INTERP_TRIANGULAR])
def test_samples_of_different_shapes_in_one_launch(kind: DALIInterpType) -> None:
    shapes = [(30, 41, 3), (17, 16, 3), (64, 90, 3)]
    sources = [pixels(*shape) for shape in shapes]
    jobs = [
        ImageResampling(xp.put(s), xp.empty((9, 13 + n, 3)), axis(len(s), 9, kind), axis(s.shape[1], 13 + n, kind))
        for n, s in enumerate(sources)
    ]
    resample_images(jobs)
    for job, source in zip(jobs, sources):
        values = expected(source, job.vertical, job.horizontal)
        assert np.abs(job.target - np.clip(values, 0, 255)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((6, 9001, 1), (3, 700)),  # a row is split into segments
        ((5, 40000, 3), (2, 3)),  # a single output needs more source pixels than fit into a block's shared memory
        ((4, 3000, 4), (2, 2999)),
        ((300, 2, 1), (1, 1)),
        ((3, 5, 1), (11, 17)),
    ],
)
def test_rows_of_any_width(shape: tuple[int, int, int], size: tuple[int, int]) -> None:
    source = pixels(*shape)
    job = ImageResampling(
        xp.put(source), xp.empty((*size, shape[2]), np.float32), axis(shape[0], size[0]), axis(shape[1], size[1])
    )
    resample_images([job])
    np.testing.assert_allclose(job.target, expected(source, job.vertical, job.horizontal), atol=2e-2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_result_does_not_depend_on_the_place_in_memory(dtype: type) -> None:
    """Elements are read one by one, or four at a time if they are aligned."""
    source = pixels(12, 16, 3).astype(dtype)
    vertical, horizontal = axis(12, 5), axis(16, 7)
    results = []
    for shift in range(5):
        memory = xp.empty((source.size + 8,), dtype)
        first = -memory.ctypes.data // source.itemsize % 4 + shift
        place = memory[first : first + source.size].reshape(source.shape)
        place[...] = source
        job = ImageResampling(place, xp.empty((5, 7, 3), np.float32), vertical, horizontal)
        resample_images([job])
        results.append(np.array(job.target))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("out", [np.float32, np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("between", [np.uint8, np.float32])
def test_fused_equals_one_after_the_other(out: type, planar: bool, channels: int, between: type) -> None:
    """The steps are resize, crop at (1, 2) to 6x8, mirror, normalize, pad channels, transpose and convert."""
    source = pixels(31, 45, 3)
    vertical, horizontal = axis(31, 9, INTERP_CUBIC), axis(45, 13, INTERP_CUBIC)
    resized = xp.empty((9, 13, 3), between)
    resample_images([ImageResampling(xp.put(source), resized, vertical, horizontal)])
    shape = (channels, 6, 8) if planar else (6, 8, channels)
    apart, fused = xp.empty(shape, out), xp.empty(shape, out)
    copy_windows(
        [
            WindowCopy(
                resized,
                apart,
                (2, 0, 1) if planar else (0, 1, 2),
                (1, 2, 0),
                [1],
                channel_axis=2,
                mean=MEAN,
                factor=FACTOR * 40,
                shift=3,
            )
        ]
    )
    job = ImageResampling(
        xp.put(source),
        fused,
        Taps(vertical.starts[1:7], vertical.weights[1:7]),
        Taps(horizontal.starts[2:10][::-1], horizontal.weights[2:10][::-1]),
        planar,
        MEAN,
        FACTOR * 40,
        3,
    )
    resample_images([job], np.dtype(between))
    np.testing.assert_array_equal(fused, apart)


def test_nearest_neighbours() -> None:
    source = pixels(10, 12, 3)
    rows, columns = np.array([1, 3, 6, 8]), np.arange(30) * 12 // 30
    tables = [Taps(index.astype(np.int32), np.ones((len(index), 1), np.float32)) for index in (rows, columns)]
    target = xp.empty((4, 30, 3))
    resample_images([ImageResampling(xp.put(source), target, *tables)])
    np.testing.assert_array_equal(target, source[rows][:, columns])


def test_stacks_of_images() -> None:
    source = pixels(4, 10, 12, 3)
    vertical, horizontal = axis(10, 4), axis(12, 5)
    together, alone = xp.empty((4, 4, 5, 3)), xp.empty((4, 4, 5, 3))
    resample_images([ImageResampling(xp.put(source), together, vertical, horizontal)])
    resample_images([ImageResampling(xp.put(s), t, vertical, horizontal) for s, t in zip(source, alone)])
    np.testing.assert_array_equal(together, alone)


def test_many_channels_are_normalized() -> None:
    source = pixels(8, 9, 7)
    mean, factor = np.arange(7, dtype=np.float32), np.arange(1, 8, dtype=np.float32)
    plain, normalized = xp.empty((3, 4, 7), np.float32), xp.empty((7, 3, 4), np.float32)
    tables = axis(8, 3), axis(9, 4)
    resample_images([ImageResampling(xp.put(source), plain, *tables)])
    resample_images([ImageResampling(xp.put(source), normalized, *tables, True, mean, factor, 1)])
    np.testing.assert_array_equal(normalized, ((plain - mean) * factor + 1).transpose(2, 0, 1))


def test_one_axis_of_a_volume() -> None:
    source = RNG.random((6, 5, 4, 2), np.float32)
    table = axis(5, 3)
    target = xp.empty((6, 3, 4, 2), np.float32)
    resample_axes([(xp.put(source), 1, table, target)])
    np.testing.assert_allclose(target, np.einsum("yi,aibc->aybc", matrix(table, 5), source), atol=1e-5)
