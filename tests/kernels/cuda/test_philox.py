"""Random numbers on the GPU are those of the CPU: exactly, or up to the last places of logarithms and cosines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

IMAGE = np.random.default_rng(0).integers(0, 256, (5, 6, 3), np.uint8)
EXACT: dict[str, Callable[[str], Any]] = {
    "uniform": lambda device: fn.random.uniform(device=device, shape=[300], range=[-1.5, 3.7], seed=1 << 40),
    "uniform double": lambda device: fn.random.uniform(device=device, shape=[3, 4], dtype=types.FLOAT64),
    "uniform int16": lambda device: fn.random.uniform(device=device, shape=9, range=[-3.7, 9], dtype=types.INT16),
    "uniform uint64": lambda device: fn.random.uniform(device=device, shape=9, range=[2, 1e18], dtype=types.UINT64),
    "uniform values": lambda device: fn.random.uniform(device=device, shape=[50], values=[-5.5, 100.5, 7]),
    "uniform computed": lambda device: fn.random.uniform(
        device=device, range=fn.stack(fn.random.uniform(range=[0, 1]), fn.random.uniform(range=[1, 2]))
    ),
    "coins": lambda device: fn.random.coin_flip(device=device, shape=[100], probability=0.3),
    "certain coins": lambda device: fn.random.coin_flip(device=device, shape=[9], probability=1, dtype=types.BOOL),
    "salt and pepper": lambda device: fn.noise.salt_and_pepper(image(device), prob=0.4),
    "salt and pepper, planes": lambda device: fn.noise.salt_and_pepper(
        fn.transpose(image(device), perm=[2, 0, 1]), prob=0.4, salt_val=9, pepper_val=3
    ),
    "salt and pepper, channels": lambda device: fn.noise.salt_and_pepper(
        fn.cast(image(device), dtype=types.FLOAT), prob=0.4, per_channel=True
    ),
}
CLOSE: dict[str, Callable[[str], Any]] = {
    "normal": lambda device: fn.random.normal(device=device, shape=[300], mean=3, stddev=2),
    "normal int32": lambda device: fn.random.normal(device=device, shape=[300], stddev=1e6, dtype=types.INT32),
    "normal uint8": lambda device: fn.random.normal(device=device, shape=[300], mean=9, stddev=9, dtype=types.UINT8),
    "noise": lambda device: fn.noise.gaussian(image(device), stddev=fn.random.uniform(range=[1, 20])),
    "noise int64": lambda device: fn.noise.gaussian(fn.cast(image(device), dtype=types.INT64), stddev=20.0),
}


def image(device: str) -> Any:
    node = fn.external_source(lambda info: IMAGE, batch=False, layout="HWC")
    return node.gpu() if device == "gpu" else node


def drawn(define: Callable[[str], Any], device: str) -> list[np.ndarray]:
    """What two batches give."""
    pipeline = pipeline_def(lambda: define(device), batch_size=3, num_threads=1, device_id=0, seed=7)()
    pipeline.build()
    samples = [np.array(t) for _ in range(2) for t in pipeline.run()[0].as_cpu()]
    pipeline.close()
    return samples


@pytest.mark.parametrize("name", EXACT)
def test_equal(name: str) -> None:
    for cpu, gpu in zip(drawn(EXACT[name], "cpu"), drawn(EXACT[name], "gpu")):
        assert cpu.dtype == gpu.dtype
        np.testing.assert_array_equal(cpu, gpu)


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    for cpu, gpu in zip(drawn(CLOSE[name], "cpu"), drawn(CLOSE[name], "gpu")):
        assert cpu.dtype == gpu.dtype
        np.testing.assert_allclose(cpu, gpu, rtol=1e-5, atol=1 if cpu.dtype.kind in "iu" else 1e-5)


def test_a_bad_argument_fails_its_sample() -> None:
    wrong = pipeline_def(
        lambda: fn.random.uniform(device="gpu", range=[3.0, 1.0]), batch_size=2, num_threads=1, device_id=0
    )()
    wrong.build()
    with pytest.raises(RuntimeError, match="Invalid range"):
        wrong.run()
    wrong.close()
