"""`jitter`, which runs only on the GPU, takes each pixel from a uniformly distributed position nearby, with known random draws."""

from __future__ import annotations

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cpu.philox import fill_draws
from penstock.kernels.cuda.philox import Jitter, jitter_images
from penstock.kernels.random_streams import Stream, sample_stream

RNG = np.random.default_rng(0)


def expected(source: np.ndarray, stream: Stream, farthest: int, fill: float) -> np.ndarray:
    height, width, _ = source.shape
    draws = np.empty(height * width * 2, np.uint32)
    fill_draws(draws, *stream)
    offsets = (draws % np.uint32(2 * farthest + 1)).astype(np.int64).reshape(height, width, 2) - farthest
    around = np.pad(source, [(farthest, farthest)] * 2 + [(0, 0)], constant_values=fill)
    y, x = np.mgrid[:height, :width] + farthest
    return around[y + offsets[..., 0], x + offsets[..., 1]]


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pixels_come_from_where_they_are_displaced_to(dtype: type, start: int) -> None:
    shapes = [(20, 31, 3), (1, 1, 1), (0, 4, 3), (5, 300, 2), (9, 9, 3)]
    sources = [RNG.integers(0, 256, shape).astype(dtype) for shape in shapes]
    first = sample_stream(5, 0, 0)._replace(start=np.uint64(start))
    streams = [sample_stream(5, 0, index)._replace(start=first.start) for index in range(len(shapes))]
    reach = [2, 1, 1, 4, 0]
    jitters = [
        Jitter(xp.put(source), xp.empty(source.shape, dtype), index, farthest, 7)
        for index, (source, farthest) in enumerate(zip(sources, reach))
    ]
    jitter_images(jitters, first)
    for source, jitter, stream in zip(sources, jitters, streams):
        np.testing.assert_array_equal(jitter.target, expected(source, stream, jitter.farthest, 7))


def test_places_are_even() -> None:
    # The value of each pixel is its position.
    height, width, farthest = 60, 50, 2
    source = np.stack(np.mgrid[:height, :width], axis=-1).astype(np.float32)
    target = xp.empty(source.shape, np.float32)
    jitter_images([Jitter(xp.put(source), target, 0, farthest, np.nan)], sample_stream(5, 0, 0))
    inner = (slice(farthest, -farthest), slice(farthest, -farthest))
    values, counts = np.unique((np.asarray(target) - source)[inner], return_counts=True)
    np.testing.assert_array_equal(values, [-2, -1, 0, 1, 2])
    assert counts.max() - counts.min() < 0.15 * counts.mean()
