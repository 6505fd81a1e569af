"""Operators on the GPU give through pipelines what they give on the CPU, where goldens do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

RNG = np.random.default_rng(1)
IMAGES = [RNG.integers(0, 256, shape, np.uint8) for shape in ((40, 60, 3), (33, 29, 3), (64, 64, 3))]
WIDE = [RNG.integers(0, 256, shape, np.uint8) for shape in ((20, 30, 6), (33, 29, 6), (16, 64, 6))]


def normalized(images: Any) -> Any:
    resized = fn.resize(images, resize_shorter=24.0)
    return fn.crop_mirror_normalize(
        resized, crop=(20, 22), mirror=fn.random.coin_flip(seed=4), mean=[120.0], std=[60.0], output_layout="CHW"
    )


CASES: dict[str, tuple[list[np.ndarray], Callable[[Any], Any]]] = {
    "resize and normalize": (IMAGES, normalized),
    "resize and normalize six channels": (WIDE, normalized),
    "resize and normalize bytes": (
        IMAGES,
        lambda images: fn.crop_mirror_normalize(
            fn.resize(images, size=(30, 20)), dtype=types.INT8, mean=[128.0], pad_output=True, output_layout="HWC"
        ),
    ),
    "mean of frames": (
        IMAGES,
        lambda images: fn.reductions.mean(fn.resize(fn.stack(images, images), size=(5, 6)), axes=[0, 2]),
    ),
}


def results(samples: list[np.ndarray], define: Callable[[Any], Any], device: str) -> list[np.ndarray]:
    def definition() -> Any:
        images = fn.external_source(lambda: samples, layout="HWC")
        return define(images.gpu() if device == "gpu" else images)

    pipeline = pipeline_def(definition, batch_size=len(samples), num_threads=1, device_id=0)()
    pipeline.build()
    arrays = [np.array(t) for t in pipeline.run()[0].as_cpu()]
    pipeline.close()
    return arrays


@pytest.mark.parametrize("name", CASES)
def test_equals_the_cpu(name: str) -> None:
    samples, define = CASES[name]
    for cpu, gpu in zip(results(samples, define, "cpu"), results(samples, define, "gpu")):
        assert cpu.dtype == gpu.dtype
        # A pixel that is rounded the other way is one step off, a sixtieth of what is normalized.
        np.testing.assert_allclose(cpu, gpu, atol=1 if cpu.dtype.kind in "iu" else 1 / 60 + 1e-5)
