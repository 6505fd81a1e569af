"""`model` runs networks on a GPU with ONNX Runtime's CUDA provider: results stay there and equal those on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tested_gpu
from networks import write_network

from penstock import Pipeline, fn, pipeline_def

IMAGES = [np.random.default_rng(index).normal(size=(2, 3 + index % 2, 4)).astype(np.float32) for index in range(5)]
DIMS = ["batch", 2, "height", "width"]


def made(define: Callable[[Any], Any], count: int, device: str = "gpu") -> Pipeline:
    """Return a pipeline with the input `data` on a device."""

    @pipeline_def(batch_size=count, num_threads=2, device_id=tested_gpu.device(), prefetch_queue_depth=1)
    def pipe() -> Any:
        return define(fn.external_source(name="data", device=device))

    return pipe()


def run(define: Callable[[Any], Any], samples: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Return the outputs of a pipeline for one batch; check that they are on the GPU."""
    with made(define, len(samples)) as pipeline:
        outputs = pipeline.run(data=samples)
        assert {output.device_type for output in outputs} == {"gpu"}
        return [[np.array(sample) for sample in output.as_cpu()] for output in outputs]


@pytest.fixture
def doubling(tmp_path: Path) -> str:
    """Write a network that doubles `image`; return its path."""
    nodes = [("Add", ["image", "image"], ["twice"])]
    return str(write_network(nodes, {"image": DIMS}, {"twice": DIMS}, folder=tmp_path))


def test_samples_of_equal_and_unequal_shapes(doubling: str) -> None:
    for samples in (IMAGES, IMAGES[::2], IMAGES[:1]):
        (found,) = run(lambda data: fn.model(data, path=doubling), samples)
        for sample, own in zip(samples, found, strict=True):
            np.testing.assert_array_equal(own, 2 * sample)


def test_results_that_the_network_computes_on_the_host(tmp_path: Path) -> None:
    """ONNX Runtime computes shapes on the host. The network runs with powers of two of samples."""
    nodes = [("Shape", ["x"], ["shape"]), ("Gather", ["shape", "first"], ["count"]), ("Neg", ["x"], ["negative"])]
    outputs, first = {"negative": ["batch", "n"], "count": [1]}, {"first": np.array([0])}
    path = str(write_network(nodes, {"x": ["batch", "n"]}, outputs, first, {"count": "INT64"}, folder=tmp_path))
    samples = [np.full(length, index, np.float32) for index, length in enumerate([3, 4, 3, 5, 4, 3, 3])]

    def define(data: Any) -> Any:
        return tuple(fn.model(data, path=path, output_names=["count", "negative"]))

    counts, negatives = run(define, samples)
    assert [own.tolist() for own in counts] == [1] * 7
    for sample, own in zip(samples, negatives, strict=True):
        np.testing.assert_array_equal(own, -sample)


def test_batches_of_varied_sizes(doubling: str) -> None:
    rng = np.random.default_rng(4)
    with made(lambda data: fn.model(data, path=doubling), 40) as pipeline:
        for count in (1, 2, 3, 7, 8, 9, 31, 32, 33, 40, 5, 1):
            samples = [rng.normal(size=(2, 5, 4)).astype(np.float32) for _ in range(count)]
            (found,) = pipeline.run(data=samples)
            np.testing.assert_array_equal(found.as_cpu().as_array(), 2 * np.stack(samples))


@pytest.mark.parametrize(
    "kind", ["BOOL", "FLOAT16", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"]
)
def test_types(kind: str, tmp_path: Path) -> None:
    dtype = {"BOOL": np.bool_, "FLOAT16": np.float16, "DOUBLE": np.float64}.get(kind) or np.dtype(kind.lower())
    dims, types = ["n", 2], {"x": kind, "y": kind}
    path = str(write_network([("Identity", ["x"], ["y"])], {"x": dims}, {"y": dims}, types=types, folder=tmp_path))
    samples = [np.array([0, 1], dtype), np.array([1, 0], dtype)]
    (found,) = run(lambda data: fn.model(data, path=path), samples)
    assert found[0].dtype == dtype
    np.testing.assert_array_equal(found, samples)


def test_a_sample_that_does_not_fit_fails(doubling: str) -> None:
    with pytest.raises(ValueError, match=r"Got a sample of shape \[3, 3, 4\]"):
        run(lambda data: fn.model(data, path=doubling), [IMAGES[0], np.zeros((3, 3, 4), np.float32)])


def test_convolutions_between_other_operators(tmp_path: Path) -> None:
    """cuDNN computes them; TF32 and the order of sums bound the agreement with the CPU."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.normal(size=(8, 3, 3, 3)).astype(np.float32)}
    dims = ["n", 3, "height", "width"]
    nodes = [("Conv", ["x", "w"], ["y"])]
    path = str(write_network(nodes, {"x": dims}, {"y": ["n", 8, "h", "w"]}, weights, folder=tmp_path))

    def define(data: Any) -> Any:
        images = fn.crop_mirror_normalize(data, mean=[128.0] * 3, std=[64.0] * 3, output_layout="CHW")
        return fn.reductions.mean(fn.model(images, path=path), axes=(1, 2))

    pictures = [rng.integers(0, 256, (40 + 5 * (index % 3), 48, 3), np.uint8) for index in range(6)]
    on_cpu = made(define, len(pictures), device="cpu")
    with on_cpu:
        (expected,) = on_cpu.run(data=pictures)
        expected = [np.array(sample) for sample in expected]
    (found,) = run(define, pictures)
    np.testing.assert_allclose(found, expected, atol=2e-2)


def test_pipelines_that_share_a_network_get_their_own_results(doubling: str) -> None:
    """The network reuses the memory of results on whatever stream the next pipeline works."""

    def count_wrong(seed: int) -> int:
        rng, wrong = np.random.default_rng(seed), 0
        with made(lambda data: fn.model(data, path=doubling), 8) as pipeline:
            for _ in range(60):
                samples = [rng.normal(size=(2, 64, 96)).astype(np.float32) for _ in range(8)]
                (found,) = pipeline.run(data=samples)
                wrong += not np.array_equal(found.as_cpu().as_array(), 2 * np.stack(samples))
        return wrong

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count_wrong, range(4))) == [0] * 4
