"""Affine warping on the GPU equals the CPU's bit for bit, because positions are accumulated in the same way."""

from __future__ import annotations

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cpu.warp import warp
from penstock.kernels.cuda.warp import warp_images

RNG = np.random.default_rng(2)
IMAGE = RNG.integers(0, 256, (37, 300, 3), np.uint8)
TURN = np.float32([[0.96, -0.28, 5.3], [0.28, 0.96, -7.1]])
SHRINK = np.float32([[0.37, 0.01, -20.0], [0.02, 0.4, 1.0]])


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("fill", [None, 42.5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_of_different_sizes_in_one_launch(linear: bool, fill: float | None, dtype: type) -> None:
    shapes = [(20, 700, 3), (50, 256, 3), (31, 9, 3), (5, 1, 3), (2, 257, 3)]
    jobs = [(xp.put(IMAGE), m, xp.empty(s, dtype)) for m, s in zip([TURN, SHRINK, TURN, SHRINK, TURN], shapes)]
    warp_images(jobs, linear, fill)
    for _, matrix, target in jobs:
        expected = np.empty(target.shape, dtype)
        warp(IMAGE, matrix, linear, fill, expected)
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("begin", range(4))
def test_pixels_that_begin_at_any_byte(begin: int, channels: int, linear: bool) -> None:
    image = RNG.integers(0, 256, (23, 41, channels), np.uint8)
    memory = xp.empty((image.size + begin,))
    memory[begin:] = image.reshape(-1)
    target, expected = xp.empty((30, 33, channels)), np.empty((30, 33, channels), np.uint8)
    warp_images([(memory[begin:].reshape(image.shape), TURN, target)], linear, 7.0)
    warp(image, TURN, linear, 7.0, expected)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("linear", [False, True])
def test_volumes(linear: bool) -> None:
    volume = RNG.random((6, 7, 8, 2), np.float32)
    matrix = np.float32([[0.9, 0.1, 0.05, 0.2], [-0.1, 0.9, 0.1, 0.3], [0.0, -0.1, 1.1, -0.4]])
    target, expected = xp.empty((5, 6, 300, 2), np.float32), np.empty((5, 6, 300, 2), np.float32)
    warp_images([(xp.put(volume), matrix, target)], linear, 0.5)
    warp(volume, matrix, linear, 0.5, expected)
    np.testing.assert_allclose(target, expected, atol=1e-6)
