"""Power spectra by the vectorized transform, compared with numpy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu import audio, fft


@pytest.mark.parametrize("size", [8, 16, 32, 40, 64, 80, 128, 160, 200, 400, 512, 1000, 1024, 3200, 4096])
@pytest.mark.parametrize("frames", [1, 16, 37])
def test_power_spectra(size: int, frames: int) -> None:
    generator = np.random.default_rng(size)
    window = generator.random(size - 1).astype(np.float32)
    step = max(size // 3, 1)
    signal = generator.standard_normal((frames - 1) * step + size - 1).astype(np.float32)
    spectra = np.empty((size // 2 + 1, frames), np.float32)
    fft.power_spectra(signal, fft.framed(window, step, 0, size, reflect=False, magnitude=False), False, spectra)
    pieces = np.stack([signal[t * step : t * step + size - 1] * window for t in range(frames)]).astype(np.float64)
    expected = np.abs(np.fft.rfft(pieces, size)).T ** 2
    np.testing.assert_allclose(spectra, expected, atol=1e-6 * expected.max())


def test_sizes_that_are_transformed() -> None:
    assert [size for size in range(-8, 200) if fft.is_transformed(size)] == [8, 16, 32, 40, 64, 80, 128, 160]


def test_silence_beside_noise_stays_silent() -> None:
    signal = np.concatenate([np.zeros(512), np.random.default_rng(0).standard_normal(512)]).astype(np.float32)
    spectra = np.empty((257, 2), np.float32)
    window = np.ones(512, np.float32)
    fft.power_spectra(signal, fft.framed(window, 512, 0, 512, reflect=True, magnitude=False), False, spectra)
    assert not spectra[:, 0].any()
    assert spectra[:, 1].all()


@pytest.mark.parametrize("frames", [1, 8, 20, 70])
@pytest.mark.parametrize("size", [8, 16, 200, 256])
def test_frequencies_or_times_come_first(size: int, frames: int) -> None:
    signal = np.random.default_rng(0).standard_normal(frames * 100 - 60).astype(np.float32)
    transform = fft.framed(np.ones(size, np.float32), 100, -size // 2, size, reflect=True, magnitude=True)
    bins = size // 2 + 1
    by_frequency, by_time = np.empty((bins, frames), np.float32), np.empty((frames, bins), np.float32)
    fft.power_spectra(signal, transform, False, by_frequency)
    fft.power_spectra(signal, transform, True, by_time)
    np.testing.assert_array_equal(by_frequency, by_time.T)


@pytest.mark.parametrize("length", [1, 5, 8, 9, 399])
def test_no_sample_beside_a_window_counts(length: int) -> None:
    window = np.random.default_rng(length).random(length).astype(np.float32)
    signal = np.full(length * 30, np.nan, np.float32)
    signal[length : 2 * length] = signal[-length:] = 1
    spectra = np.empty((257, 30), np.float32)
    fft.power_spectra(signal, fft.framed(window, length, 0, 512, reflect=False, magnitude=False), False, spectra)
    expected = np.abs(np.fft.rfft(window, 512)) ** 2
    for frame in (1, 29):
        np.testing.assert_allclose(spectra[:, frame], expected, atol=1e-6 * expected.max())
    assert np.isnan(spectra[:, [0, *range(2, 29)]]).all()


@pytest.mark.parametrize("frames", [1, 31, 32, 75])
def test_bands_are_summed_as_by_themselves(frames: int) -> None:
    generator = np.random.default_rng(0)
    signal = generator.standard_normal(frames * 64).astype(np.float32)
    transform = fft.framed(np.ones(100, np.float32), 64, -50, 128, reflect=True, magnitude=False)
    starts, weights = np.arange(0, 60, 3), generator.random((20, 6)).astype(np.float32)
    weights[4:, 4:] = 0
    spectra, expected, bands = (np.empty((rows, frames), np.float32) for rows in (65, 20, 20))
    fft.power_spectra(signal, transform, False, spectra)
    audio.weighted_rows(spectra, starts, weights, expected)
    fft.band_power(signal, transform, starts, weights, bands)
    np.testing.assert_array_equal(bands, expected)
    dense = np.zeros((20, 65))
    for row, start in enumerate(starts):
        dense[row, start : start + 6] = weights[row]
    np.testing.assert_allclose(bands, dense @ spectra, rtol=1e-5)
