"""Fourier transforms of all sizes on the GPU, compared with NumPy."""

from __future__ import annotations

import math

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda.launch import columns_of
from penstock.operators.audio import _spectrum_cuda as spectrum
from penstock.operators.audio._spectrum_cuda import Framing, power_spectra, radices_of
from penstock.tensors import TensorListGPU

RNG = np.random.default_rng(6)


def check(count: int, step: int, lengths: tuple[int, ...] = (1500, 40), time_first: bool = True) -> None:
    window = RNG.random(count).astype(np.float32)
    signals = [RNG.standard_normal(max(length, count)).astype(np.float32) for length in lengths]
    frames = [np.lib.stride_tricks.sliding_window_view(signal, count)[::step] for signal in signals]
    shapes = [(len(own), count // 2 + 1)[:: 1 if time_first else -1] for own in frames]
    targets = [xp.empty(shape, np.float32) for shape in shapes]
    framing = Framing(step, 0, count, reflect=False, magnitude=True, time_first=time_first)
    batches = map(TensorListGPU.of_samples, (list(map(xp.put, signals)), targets))
    power_spectra(*(columns_of(batch, range(len(lengths))) for batch in batches), window, framing)
    for own, target in zip(frames, targets):
        expected = np.abs(np.fft.rfft(own * window, axis=1))
        found = target if time_first else target.T
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * expected.max())


@pytest.mark.parametrize("count", [*range(1, 23), 49, 64, 77, 81, 125, 360, 400, 480, 512, 1024, 1201, 2 * 499])
def test_any_size(count: int) -> None:
    check(count, 97)


def test_frequency_first() -> None:
    check(256, 10, time_first=False)


def test_blocks_that_take_turns_in_memory_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum, "_SHARED_BYTES", 0)
    monkeypatch.setattr(spectrum, "_MAX_BLOCKS", 3)
    check(120, 7)


@pytest.mark.parametrize("size", [1, 2, 7, 30, 49, 97, 256, 512, 1000, 4096, 5041, 2 * 9973])
def test_radices(size: int) -> None:
    radices = radices_of(size)
    assert math.prod(radices) == size
    assert all(radix == 4 or all(radix % factor for factor in range(2, radix)) for radix in radices)
