"""Large batches, which are written to memory bypassing the caches, have the same elements as small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def

RNG = np.random.default_rng(0)
# More than 2 MiB, with rows that begin anywhere in a cache line.
IMAGES = [RNG.integers(0, 256, (600 + 7 * i, 701 + 10 * i, 3), np.uint8) for i in range(3)]
FILL = [3, 200, 77]


def padded(image: np.ndarray, fill: Any) -> np.ndarray:
    result = np.empty((640, 900, 3), np.uint8)
    result[...] = fill
    result[: image.shape[0], : image.shape[1]] = image
    return result


def erased(image: np.ndarray) -> np.ndarray:
    result = image.copy()
    result[10:40, 20:600] = 9
    return result


CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "whole rows": (lambda x: fn.slice(x, start=[3], end=[590], axes=[0]), lambda image: image[3:590]),
    "parts of rows": (lambda x: fn.slice(x, start=[5], end=[690], axes=[1]), lambda image: image[:, 5:690]),
    "upside down": (lambda x: fn.flip(x, horizontal=0, vertical=1), lambda image: image[::-1]),
    "turned": (lambda x: fn.flip(x, horizontal=1, vertical=1), lambda image: image[::-1, ::-1]),
    "padded": (
        lambda x: fn.pad(x, axes=[0, 1], shape=[640, 900], fill_value=7),
        lambda image: padded(image, 7),
    ),
    "padded with a colour": (
        lambda x: fn.slice(
            x, start=[0, 0], end=[640, 900], axes=[0, 1], out_of_bounds_policy="pad", fill_values=[3.0, 200.0, 77.0]
        ),
        lambda image: padded(image, FILL),
    ),
    "erased": (
        lambda x: fn.erase(x, anchor=[10.0, 20.0], shape=[30.0, 580.0], axis_names="HW", fill_value=9.0),
        erased,
    ),
    "copied": (lambda x: fn.copy(x), lambda image: image),
    "joined": (lambda x: fn.cat(x, x, axis=1), lambda image: np.concatenate([image, image], axis=1)),
    "stacked": (lambda x: fn.stack(x, x), lambda image: np.stack([image, image])),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_elements(name: str, threads: int) -> None:
    work, expected = CALLS[name]

    @pipeline_def(batch_size=len(IMAGES), num_threads=threads, device_id=None)
    def define() -> Any:
        return work(fn.external_source(lambda: IMAGES, layout="HWC"))

    pipeline = define()
    for _ in range(2):
        (results,) = pipeline.run()
        assert sum(result.nbytes for result in map(np.asarray, results)) >= 2 << 20
        for image, result in zip(IMAGES, results, strict=True):
            np.testing.assert_array_equal(np.asarray(result), expected(image))
