"""Power spectra by the vectorized transform, against numpy's transform in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu import fft


@pytest.mark.parametrize("size", [4, 8, 16, 32, 64, 128, 512, 1024, 4096])
@pytest.mark.parametrize("frames", [1, 16, 37])
def test_power_spectra(size: int, frames: int) -> None:
    generator = np.random.default_rng(size)
    window = generator.random(size - 1).astype(np.float32)
    step = max(size // 3, 1)
    signal = generator.standard_normal((frames - 1) * step + size - 1).astype(np.float32)
    spectra = np.empty((size // 2 + 1, frames), np.float32)
    fft.power_spectra(signal, window, step, 0, False, False, fft.roots_of_unity(size), spectra)
    pieces = np.stack([signal[t * step : t * step + size - 1] * window for t in range(frames)]).astype(np.float64)
    expected = np.abs(np.fft.rfft(pieces, size)).T ** 2
    np.testing.assert_allclose(spectra, expected, atol=1e-6 * expected.max())


def test_silence_beside_noise_stays_silent() -> None:
    signal = np.concatenate([np.zeros(512), np.random.default_rng(0).standard_normal(512)]).astype(np.float32)
    spectra = np.empty((257, 2), np.float32)
    window = np.ones(512, np.float32)
    fft.power_spectra(signal, window, 512, 0, True, False, fft.roots_of_unity(512), spectra)
    assert not spectra[:, 0].any()
    assert spectra[:, 1].all()


def test_results_do_not_depend_on_strides() -> None:
    signal = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    window = np.ones(256, np.float32)
    by_frequency, by_time = np.empty((129, 20), np.float32), np.empty((20, 129), np.float32)
    for out in (by_frequency, by_time.T):
        fft.power_spectra(signal, window, 100, -128, True, True, fft.roots_of_unity(256), out)
    np.testing.assert_array_equal(by_frequency, by_time.T)
