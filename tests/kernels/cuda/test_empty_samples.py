"""Empty samples, alone and among others, give the same results on GPU and CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def

IDENTITY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "clahe": lambda x: fn.clahe(x, tiles_x=2, tiles_y=2, clip_limit=1.0),
    "dilate": fn.experimental.dilate,
    "equalize": fn.equalize,
    "filter": lambda x: fn.filter(x, np.ones((3, 1), np.float32)),
    "grid_mask": fn.grid_mask,
    "jpeg": fn.jpeg_compression_distortion,
    "median": fn.experimental.median_blur,
    "remap": lambda x: fn.experimental.remap(x, np.ones((3, 3), np.float32), np.ones((3, 3), np.float32)),
    "shots": fn.noise.shot,
    "sphere": fn.sphere,
    "warp_affine": lambda x: fn.warp_affine(x, matrix=IDENTITY),
    "water": fn.water,
}
REFUSED_ON_CPU = ("equalize", "jpeg")
REFUSED = ("filter",)
SHAPES = {
    "some": [(0, 5, 3), (6, 4, 3), (5, 0, 3)],
    "all": [(0, 5, 3)] * 3,
}


def run(define: Callable[[Any], Any], samples: list[np.ndarray], device: str, condition: Any = None) -> list[Any]:
    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=0, seed=3, enable_conditionals=True)
    def pipeline() -> Any:
        data = fn.external_source(lambda: samples, layout="HWC")
        data = data.gpu() if device == "gpu" else data
        if condition is None:
            return define(data)
        if fn.external_source(lambda: [np.bool_(condition)] * len(samples)):
            result = define(data)
        else:
            result = data
        return result

    built = pipeline()
    built.build()
    return [np.array(tensor) for tensor in built.run()[0].as_cpu()]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - {*REFUSED_ON_CPU, *REFUSED}))
def test_samples_without_elements(name: str, shapes: str) -> None:
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 256, shape, np.uint8) for shape in SHAPES[shapes]]
    for expected, result in zip(run(OPERATORS[name], samples, "cpu"), run(OPERATORS[name], samples, "gpu")):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", REFUSED_ON_CPU)
def test_samples_without_elements_on_gpu_alone(name: str) -> None:
    samples = [np.zeros(shape, np.uint8) for shape in SHAPES["some"]]
    with pytest.raises(RuntimeError, match="empty"):
        run(OPERATORS[name], samples, "cpu")
    assert [result.shape for result in run(OPERATORS[name], samples, "gpu")] == SHAPES["some"]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("name", REFUSED)
def test_samples_without_elements_are_refused(name: str, device: str) -> None:
    with pytest.raises(RuntimeError, match="empty"):
        run(OPERATORS[name], [np.zeros(shape, np.uint8) for shape in SHAPES["some"]], device)


@pytest.mark.parametrize("name", OPERATORS)
def test_batches_without_samples(name: str) -> None:
    samples = [np.full((4, 5, 3), index, np.uint8) for index in range(2)]
    for expected, result in zip(samples, run(OPERATORS[name], samples, "gpu", condition=False)):
        np.testing.assert_array_equal(result, expected)
