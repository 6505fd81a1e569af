"""Runs pipelines on CPU and GPU (real or emulated), and compares the results; used by operators' tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import fn, pipeline_def, types

Define = Callable[[str], Any]

_RNG = np.random.default_rng(0)
IMAGES = [_RNG.integers(0, 256, shape, np.uint8) for shape in ((40, 60, 3), (33, 29, 3), (64, 64, 3))]
KINDS = {"uint8": types.UINT8, "int16": types.INT16, "uint16": types.UINT16, "float": types.FLOAT}
BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")


def given(samples: list[np.ndarray], device: str) -> Any:
    """Return a source of batches, on ``device``: the samples and, in every second batch, the samples mirrored vertically."""
    others = [np.ascontiguousarray(sample[::-1]) for sample in samples]
    node = fn.external_source([samples, others], cycle=True, layout="HWC")
    return node.gpu() if device == "gpu" else node


def images(device: str) -> Any:
    """Return a source of three images of different sizes."""
    return given(IMAGES, device)


def frames(device: str) -> Any:
    """Return sequences of two frames: each image, and its mirror image."""
    return fn.stack(images(device), fn.flip(images(device)), axis_name="F")


def typed(device: str, kind: str) -> Any:
    """Return the images converted to the type of this name; a signed type has negative values, too."""
    spread = 100 if kind == "uint16" else 1
    return fn.cast((images(device) - (0 if kind.startswith("u") else 128)) * spread, dtype=KINDS[kind])


def planes(node: Any) -> Any:
    """Return images (H, W, C) transposed to (C, H, W)."""
    return fn.transpose(node, perm=[2, 0, 1])


def everywhere(device: str, value: Any) -> Any:
    """Return a source, on ``device``, whose samples are all ``value``."""
    node = fn.external_source(lambda: [value] * 3)
    return node.gpu() if device == "gpu" else node


def results(define: Define, device: str, batches: int = 3) -> list[np.ndarray]:
    """Run the pipeline for a number of batches; return all samples, on the host."""
    pipeline = pipeline_def(lambda: define(device), batch_size=3, num_threads=1, device_id=0, seed=7)()
    pipeline.build()
    samples = [np.array(t) for _ in range(batches) for t in pipeline.run()[0].as_cpu()]
    pipeline.close()
    return samples


def check_equal(define: Define) -> None:
    """Raise AssertionError unless CPU and GPU return equal values of the same type."""
    for cpu, gpu in zip(results(define, "cpu"), results(define, "gpu")):
        assert cpu.dtype == gpu.dtype
        np.testing.assert_array_equal(cpu, gpu)


def check_close(define: Define, tolerance: float = 1e-5) -> None:
    """Raise AssertionError unless CPU and GPU return nearly the same.

    Integers may differ by at most 1; real numbers by ``tolerance`` and, in addition, 1e-5 times their value.
    """
    for cpu, gpu in zip(results(define, "cpu"), results(define, "gpu")):
        assert cpu.dtype == gpu.dtype
        whole = cpu.dtype.kind in "iu"
        wide = np.float64 if not whole or cpu.dtype.itemsize < 8 else cpu.dtype
        np.testing.assert_allclose(cpu.astype(wide), gpu.astype(wide), rtol=1e-5, atol=1 if whole else tolerance)
