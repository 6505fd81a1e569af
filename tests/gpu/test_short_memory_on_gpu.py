"""If a GPU sometimes has too little memory, JPEGs still have the same pixels, or the batch fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cupy
import numpy as np
import pytest
import tested_gpu
from broken_batches import saved
from short_memory import Decode, answers, check_same, cropped, normalized, whole

RNG = np.random.default_rng(29)
BATCHES = 300


@contextmanager
def short_memory() -> Iterator[list[int]]:
    """Make a tenth of the allocations from CuPy's pool fail inside the context; yield a list that counts the failures."""
    pool, refused = cupy.get_default_memory_pool(), [0]

    def allocate(size: int) -> Any:
        if RNG.random() < 0.1:
            refused[0] += 1
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return pool.malloc(size)

    cupy.cuda.set_allocator(allocate)
    try:
        yield refused
    finally:
        cupy.cuda.set_allocator(pool.malloc)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("decode", [whole, cropped, normalized])
def test_pixels_are_those_with_memory(decode: Decode, smooth: bool) -> None:
    """Penstock's kernels decode photographs, and the engine decodes small images."""
    images = [saved(height=40 + 9 * k, width=56 + 7 * k, subsampling=k % 3) for k in range(4)]
    images += [saved(height=700 + 3 * k, width=801 - k, subsampling=k % 3) for k in range(4)]
    order = np.random.default_rng(3)
    batches = [[images[k] for k in order.integers(0, len(images), 6)] for _ in range(BATCHES)]
    batches[::10] = [[images[k] for k in order.integers(0, len(images), 40)] for _ in batches[::10]]
    options: dict[str, Any] = {"jpeg_fancy_upsampling": smooth, "device_id": tested_gpu.device()}
    expected = answers(decode, batches, 40, **options)
    with short_memory() as refused:
        found = answers(decode, batches, 40, **options)
    assert refused[0] > BATCHES // 10
    assert check_same(found, expected) > BATCHES // 10
