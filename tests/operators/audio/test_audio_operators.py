"""Audio operators from first principles; golden cases compare them with DALI."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
import soundfile

from penstock import fn, pipeline_def, types

RATE = 16000
TIMES = np.arange(4000) / RATE


def tone(hertz: float) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * TIMES).astype(np.float32)


def first(define: Any, data: np.ndarray) -> Any:
    def definition() -> Any:
        outputs = define(fn.external_source(lambda: [data]))
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipeline = pipeline_def(definition, batch_size=1, num_threads=1, device_id=None)()
    pipeline.build()
    outputs = [np.array(batch[0]) for batch in pipeline.run()]
    return outputs[0] if len(outputs) == 1 else outputs


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_a_tone_is_at_its_frequency(layout: str) -> None:
    spectra = first(lambda x: fn.spectrogram(x, nfft=512, layout=layout), tone(1000))
    loudest = spectra.argmax(axis=0 if layout == "ft" else 1)
    assert set(loudest[1:-1].tolist()) == {1000 * 512 // RATE}


def test_a_spectrogram_is_the_transform_of_windows() -> None:
    signal = tone(440) + tone(3000)
    window = np.hamming(300).astype(np.float32)
    spectra = first(
        lambda x: fn.spectrogram(
            x, nfft=400, window_length=300, window_step=77, window_fn=window.tolist(), center_windows=False
        ),
        signal,
    )
    starts = range(0, len(signal) - 299, 77)
    expected = np.array([np.abs(np.fft.rfft(signal[s : s + 300] * window, 400)) ** 2 for s in starts]).T
    np.testing.assert_allclose(spectra, expected, atol=1e-5 * expected.max())


def test_long_signals_are_transformed_in_tiles_without_seams() -> None:
    signal = np.tile(tone(700), 10)
    whole = first(lambda x: fn.spectrogram(x, window_step=40, center_windows=False), signal)
    part = first(lambda x: fn.spectrogram(x, window_step=40, center_windows=False), signal[40 * 300 :])
    np.testing.assert_array_equal(whole[:, 300:], part)


def test_bands_of_equal_power_per_hertz_are_equal() -> None:
    flat = np.ones((513, 3), np.float32)
    bands = first(lambda x: fn.mel_filter_bank(x, nfilter=20, sample_rate=16000.0), flat)
    np.testing.assert_allclose(bands[3:], 1024 / RATE, rtol=0.1)


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_librosa_s_bands_are_computed_in_double_precision(layout: str) -> None:
    edges = 200 / 3 * np.linspace(0, 12, 6)  # evenly spaced, as the scale is linear below 1 kHz
    frequencies = np.linspace(0, 8000, 257)[None]
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    # One spectrum for each frequency, with power at that frequency only, so that each sum is a single weight.
    powers = np.eye(257, dtype=np.float32)
    bands = first(
        lambda x: fn.mel_filter_bank(
            fn.reinterpret(x, layout=layout), nfilter=4, sample_rate=16000.0, freq_high=800.0, reference="librosa"
        ),
        powers,
    )
    np.testing.assert_array_equal(bands if layout == "ft" else bands.T, weights.astype(np.float32))


def test_decibels_fall_by_ten_for_a_tenth_of_the_power() -> None:
    levels = first(lambda x: fn.to_decibels(x, cutoff_db=-25.0), np.float32([10, 1, 0.1, 0.01, 0]))
    np.testing.assert_allclose(levels, [0, -10, -20, -25, -25], atol=1e-4)


def test_an_orthonormal_transform_keeps_the_energy() -> None:
    bands = np.random.default_rng(0).random((40, 7)).astype(np.float32)
    for kind in (2, 3, 4):
        coefficients = first(lambda x, kind=kind: fn.mfcc(x, n_mfcc=40, dct_type=kind, normalize=True), bands)
        np.testing.assert_allclose((coefficients**2).sum(axis=0), (bands**2).sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize(("border", "start"), [("zero", 1.0), ("clamp", 0.5), ("reflect", 0.0)])
def test_preemphasis_and_its_borders(border: str, start: float) -> None:
    filtered = first(lambda x: fn.preemphasis_filter(x, preemph_coeff=0.5, border=border), np.float32([1, 2, 4]))
    np.testing.assert_array_equal(filtered, [start, 1.5, 3])


def test_preemphasis_of_nothing_and_of_one() -> None:
    assert first(lambda x: fn.preemphasis_filter(x), np.float32([])).shape == (0,)
    assert first(lambda x: fn.preemphasis_filter(x, border="reflect"), np.float32([3])).tolist() == [3]


def test_silence_is_left_out() -> None:
    signal = np.concatenate([np.zeros(5000), tone(500), np.zeros(5000)]).astype(np.float32)
    start, length = first(lambda x: fn.nonsilent_region(x, window_length=64), signal)
    assert abs(int(start) - (5000 - 63)) <= 3
    assert abs(int(start + length) - (9000 + 63)) <= 3


def test_silence_of_nothing() -> None:
    assert [int(n) for n in first(lambda x: fn.nonsilent_region(x), np.float32([]))] == [0, 0]


def test_resampling_keeps_a_tone() -> None:
    resampled = first(lambda x: fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0), tone(440))
    expected = np.sin(2 * np.pi * 440 * np.arange(len(resampled)) / 22050)
    np.testing.assert_allclose(resampled[100:-100], expected[100:-100], atol=2e-3)


def test_decoding_gives_back_what_was_encoded() -> None:
    samples = (tone(300) * 30000).astype(np.int16)
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="FLAC")
    decoded, rate = first(lambda x: fn.decoders.audio(x, dtype=types.INT16), np.frombuffer(file.getvalue(), np.uint8))
    np.testing.assert_array_equal(decoded[:, 0], samples)
    assert rate == RATE


@pytest.mark.parametrize(
    ("define", "data", "message"),
    [
        (lambda x: fn.spectrogram(x, window_length=600, nfft=512), tone(1), "bigger than the FFT size"),
        (lambda x: fn.spectrogram(x, center_windows=False), tone(1)[:100], "Signal is too short"),
        (lambda x: fn.spectrogram(x), tone(1)[:0], "empty"),
        (lambda x: fn.spectrogram(x), tone(1).astype(np.float64), "float32"),
        (lambda x: fn.power_spectrum(x, axis=3), tone(1), r"out of bounds \[0, 1\)"),
        (lambda x: fn.mel_filter_bank(x, freq_low=9000.0, freq_high=100.0), tone(1), "freq"),
        (lambda x: fn.mel_filter_bank(x, reference="torchaudio"), tone(1)[None], "`reference` must be"),
        (lambda x: fn.to_decibels(x, reference=0.0), tone(1), "can't be zero"),
        (lambda x: fn.mfcc(x), tone(1), "number of dimensions 1"),
        (lambda x: fn.mfcc(x, dct_type=1, normalize=True), tone(1)[None], "Ortho-normalization is not supported"),
        (lambda x: fn.preemphasis_filter(x, border="wrap"), tone(1), "border"),
        (lambda x: fn.nonsilent_region(x, window_length=-1), tone(1), "negative"),
        (lambda x: fn.audio_resample(x), tone(1), "No resampling factor specified"),
        (lambda x: fn.audio_resample(x, out_length=5), tone(1)[:0], "empty"),
        (lambda x: fn.decoders.audio(x), np.arange(100, dtype=np.uint8), "(?i)format|recogni"),
    ],
)
def test_what_cannot_be_is_refused(define: Any, data: np.ndarray, message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        first(define, data)
    # The text before "encountered:" quotes the line above, which contains the expected words.
    assert re.search(message, str(caught.value).partition("encountered:")[2])
