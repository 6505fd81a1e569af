"""Random operators give the same results on CPU and GPU."""

from __future__ import annotations

import pytest
from devices import Define, check_close, check_equal, images

from penstock import fn, types

# Only with --exhaustive: in the default run, `tests/sweeps` compares CPU and GPU.
pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("with_gpu")]


EXACT: dict[str, Define] = {
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
    "salt and pepper": lambda device: fn.noise.salt_and_pepper(images(device), prob=0.4),
    "salt and pepper, planes": lambda device: fn.noise.salt_and_pepper(
        fn.transpose(images(device), perm=[2, 0, 1]), prob=0.4, salt_val=9, pepper_val=3
    ),
    "salt and pepper, channels": lambda device: fn.noise.salt_and_pepper(
        fn.cast(images(device), dtype=types.FLOAT), prob=0.4, per_channel=True
    ),
    "shots": lambda device: fn.noise.shot(images(device), factor=fn.random.uniform(range=[1, 20])),
    "shots of floats": lambda device: fn.noise.shot(fn.cast(images(device), dtype=types.FLOAT)),
}
"""Cases whose results are equal to the last bit."""

CLOSE: dict[str, Define] = {
    "normal": lambda device: fn.random.normal(device=device, shape=[300], mean=3, stddev=2),
    "normal int32": lambda device: fn.random.normal(device=device, shape=[300], stddev=1e6, dtype=types.INT32),
    "normal uint8": lambda device: fn.random.normal(device=device, shape=[300], mean=9, stddev=9, dtype=types.UINT8),
    "noise": lambda device: fn.noise.gaussian(images(device), stddev=fn.random.uniform(range=[1, 20])),
    "noise int64": lambda device: fn.noise.gaussian(fn.cast(images(device), dtype=types.INT64), stddev=20.0),
}
"""Cases whose results may differ between devices: integers by at most 1, real numbers by at most 1e-5."""


@pytest.mark.parametrize("name", EXACT)
def test_equal(name: str) -> None:
    check_equal(EXACT[name])


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    check_close(CLOSE[name])
