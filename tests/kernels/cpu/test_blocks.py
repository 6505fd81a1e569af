"""Copies of blocks for a whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.cpu.blocks import Blocks, copy_blocks, join_samples, volumes
from penstock.schema.workspace import Workspace
from penstock.tensors import TensorListCPU


def copied(source: np.ndarray, target: np.ndarray, *columns: Any, **options: Any) -> list[int]:
    """Copy one block from ``source`` to ``target``; return the number of shares in each call of the thread pool."""
    shares: list[int] = []

    def parallel(task: Any, count: int) -> None:
        shares.append(count)
        for index in range(count):
            task(index)

    first, second = (np.array([array.ctypes.data]) for array in (source, target))
    copy_blocks(Workspace(parallel=parallel, **options), Blocks(first, second, *columns))
    return shares


def test_rows_keep_their_distances() -> None:
    source, target = np.arange(20, dtype=np.uint8).reshape(4, 5), np.zeros((4, 7), np.uint8)
    copied(source, target, 5, 7, 4, 3)
    assert np.array_equal(target[:, :3], source[:, :3])
    assert not target[:, 3:].any()


def test_a_negative_step_goes_upwards() -> None:
    source, target = np.arange(20, dtype=np.uint8).reshape(4, 5), np.zeros((4, 5), np.uint8)
    copied(source[3:], target, -5, 5, 4, 5)
    assert np.array_equal(target, source[::-1])


@pytest.mark.parametrize("columns", [(5, 5, 0, 5), (5, 5, 4, 0)])
def test_blocks_without_bytes_change_nothing(columns: tuple[int, ...]) -> None:
    source, target = np.ones((4, 5), np.uint8), np.zeros((4, 5), np.uint8)
    copied(source, target, *columns)
    assert not target.any()


@pytest.mark.parametrize(("threads", "size", "expected"), [(1, 1 << 21, []), (2, 1 << 10, []), (2, 1 << 21, [2])])
def test_threads_share_what_is_worth_it(threads: int, size: int, expected: list[int]) -> None:
    source, target = np.arange(4 * size, dtype=np.uint32).view(np.uint8), np.zeros(16 * size, np.uint8)
    shares: list[int] = []

    def parallel(task: Any, count: int) -> None:
        shares.append(count)
        for index in reversed(range(count)):
            task(index)

    starts = np.arange(16) * size
    blocks = Blocks(source.ctypes.data + starts, target.ctypes.data + starts, size, size, 1, size)
    copy_blocks(Workspace(parallel=parallel, num_threads=threads), blocks)
    assert np.array_equal(source, target)
    assert shares == expected


def test_blocks_that_belong_together_are_copied_in_order() -> None:
    size = 1 << 20
    sources = np.repeat(np.arange(6, dtype=np.uint8), size)
    target = np.zeros(2 * size, np.uint8)
    places = target.ctypes.data + np.repeat([0, size], 3)
    blocks = Blocks(sources.ctypes.data + np.arange(6) * size, places, size, size, 1, size)

    def parallel(task: Any, count: int) -> None:
        for index in reversed(range(count)):
            task(index)

    copy_blocks(Workspace(parallel=parallel, num_threads=2), blocks, together=3)
    assert np.array_equal(target, np.repeat([2, 5], size))


def test_samples_are_joined_along_an_axis() -> None:
    shapes = [(2, 3, 4), (5, 1, 4)]
    inputs = [TensorListCPU.of_samples([np.full(shape, value, np.int16) for shape in shapes]) for value in (7, 9)]
    output = TensorListCPU.allocate([(2, 6, 4), (5, 2, 4)], inputs[0].dtype)
    assert join_samples(Workspace(inputs, batch_size=2, outputs=[output]), 1)
    for joined, *parts in zip(output.samples, inputs[0].samples, inputs[1].samples):
        assert np.array_equal(joined, np.concatenate(parts, axis=1))


def test_what_is_not_contiguous_is_not_joined() -> None:
    inputs = [TensorListCPU.of_samples([np.zeros((4, 6), np.uint8)[:, ::2]])]
    output = TensorListCPU.allocate([(4, 3)], inputs[0].dtype)
    assert not join_samples(Workspace(inputs, batch_size=1, outputs=[output]), 0)


def test_volumes_are_one_number_for_equal_shapes() -> None:
    assert volumes([(2, 3, 4)] * 3, 1) == 12
    assert np.array_equal(volumes([(2, 3, 4), (5, 6, 7)], 0, 2), [6, 30])
