"""Functions of broadcast operands, and linear colour transforms, compared with NumPy."""

from __future__ import annotations

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda import elementwise
from penstock.kernels.cuda.colour import fits, transform_colours
from penstock.kernels.cuda.elementwise import evaluate_batch

RNG = np.random.default_rng(8)
SHAPES = [
    [(), ()],
    [(14101,), (1,)],
    [(3, 5000), (5000,)],
    [(7, 9, 3), (3,)],
    [(7, 9, 3), (9, 1)],
    [(5, 1, 17), (1, 4, 1)],
    [(2, 1, 3, 1, 2, 1), (1, 3, 1, 2, 1, 5)],
    [(90, 61), (90, 1)],
    [(2, 3, 1), (2, 1, 3)],
]


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcast(shapes: list[tuple[int, ...]], kind: type) -> None:
    operands = [RNG.integers(0, 100, shape).astype(np.uint8) for shape in shapes]
    expected = np.add(*operands, dtype=kind)
    # The second sample begins right after the first, so it may be unaligned.
    memory = xp.empty((2 * expected.size,), kind)
    targets = [memory[: expected.size].reshape(expected.shape), memory[expected.size :].reshape(expected.shape)]
    evaluate_batch("return a + b;", [([xp.put(operand) for operand in operands], target) for target in targets])
    for target in targets:
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("shapes", SHAPES)
def test_of_many_elements(shapes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    """64-bit indices, which only large arrays need, are forced for small arrays."""
    monkeypatch.setattr(elementwise, "_INT32_INDEX_LIMIT", 0)
    test_broadcast(shapes, np.uint8)


def test_a_function_of_where_the_operand_is() -> None:
    source = RNG.integers(0, 256, 5000, np.uint8)
    target = xp.empty(source.shape, np.int32)
    evaluate_batch("return int32(offsets[0]) * 256 + a;", [((xp.put(source),), target)], promoted=False)
    np.testing.assert_array_equal(target, np.arange(5000) * 256 + source)


@pytest.mark.parametrize("channels", [(1, 1), (3, 3), (3, 1), (1, 3), (4, 4), (2, 4)])
@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.float32)])
def test_colours(channels: tuple[int, int], kinds: tuple[type, type]) -> None:
    matrix, offset = RNG.normal(size=channels[::-1]).astype(np.float32), np.float32([7, -3, 100, 0.5])[: channels[1]]
    assert fits(matrix)
    sources = [RNG.integers(0, 256, (pixels, channels[0])).astype(kinds[0]) for pixels in (1, 4099, 0, 30)]
    memory, jobs = xp.empty((sum(map(len, sources)) * channels[1],), kinds[1]), []
    begin = 0
    for source in sources:
        target = memory[begin : begin + len(source) * channels[1]].reshape(len(source), channels[1])
        jobs.append((xp.put(source), matrix, offset, target))
        begin += target.size
    transform_colours(jobs)
    for source, (_, _, _, target) in zip(sources, jobs):
        expected = matrix[:, 0] * source[:, :1].astype(np.float32)
        for channel in range(1, channels[0]):
            expected = expected + matrix[:, channel] * source[:, channel : channel + 1].astype(np.float32)
        expected += offset
        if kinds[1] == np.uint8:
            expected = np.clip(np.trunc(expected + np.copysign(np.float32(0.5), expected)), 0, 255)
        np.testing.assert_array_equal(target, expected.astype(kinds[1]))


def test_matrices_of_different_shapes_at_once() -> None:
    points = RNG.random((5, 4), np.float32)
    matrices = [np.eye(4, dtype=np.float32), np.ones((2, 4), np.float32)]
    targets = [xp.empty((5, 4), np.float32), xp.empty((5, 2), np.float32)]
    transform_colours(
        [(xp.put(points), matrix, np.zeros(len(matrix)), target) for matrix, target in zip(matrices, targets)]
    )
    np.testing.assert_array_equal(targets[0], points)
    np.testing.assert_array_equal(
        targets[1], np.stack([((points[:, 0] + points[:, 1]) + points[:, 2]) + points[:, 3]] * 2, 1)
    )
