"""`mel_features` compared with its definition, and `standardize` along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import one_sample as run

from penstock import DataNode, fn


def sound(samples: int) -> np.ndarray:
    return np.random.default_rng(samples).normal(0, 0.1, samples).astype(np.float32)


def kaldi_bands(bands: int) -> np.ndarray:
    """Return the weights of triangular mel bands, of shape (bands, 257)."""

    def mel(hertz: np.ndarray) -> np.ndarray:
        return 1127 * np.log(1 + np.asarray(hertz, np.float64) / 700)

    edges, places = np.linspace(mel(20), mel(8000), bands + 2)[:, None], mel(np.arange(257) * 31.25)
    rising, falling = (
        (places - edges[:-2]) / np.diff(edges, axis=0)[:-1],
        (edges[2:] - places) / np.diff(edges, axis=0)[1:],
    )
    return np.maximum(0, np.minimum(rising, falling))


def test_kaldi_s_features() -> None:
    signal = sound(2000)
    rows = []
    for start in range(0, 1601, 160):
        frame = signal[start : start + 400].astype(np.float64)
        frame -= frame.mean()
        frame -= 0.97 * np.concatenate([frame[:1], frame[:-1]])
        power = np.abs(np.fft.rfft(frame * np.hanning(400) ** 0.85, 512)) ** 2
        rows.append(np.log(np.maximum(kaldi_bands(40) @ power, 1.2e-7)))
    given = run(
        lambda node: fn.mel_features(
            node,
            nfilter=40,
            nfft=512,
            window="povey",
            freq_low=20.0,
            mel_formula="kaldi",
            straight_in_mel=True,
            preemphasis=0.97,
            remove_offset=True,
            floor=1.2e-7,
        ),
        signal,
    )
    assert given.dtype == np.float32
    np.testing.assert_allclose(given, rows, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", ["mixed", "double", "single"])
@pytest.mark.parametrize("formula", ["slaney", "htk"])
def test_precisions_and_scales_agree_with_those_of_other_operators(precision: str, formula: str) -> None:
    signal = sound(4000)

    def other(node: DataNode) -> DataNode:
        window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)).tolist()
        power = fn.spectrogram(node, nfft=512, window_length=400, window_step=160, window_fn=window)
        return fn.mel_filter_bank(power, nfilter=30, sample_rate=16000.0, mel_formula=formula)

    given = run(
        lambda node: fn.mel_features(
            node,
            nfilter=30,
            nfft=512,
            mel_formula=formula,
            normalize=True,
            center_windows=True,
            logarithm="none",
            precision=precision,
            layout="ft",
        ),
        signal,
    )
    np.testing.assert_allclose(given, run(other, signal), rtol=1e-4, atol=1e-7)


def test_logarithms_and_floors() -> None:
    signal = np.zeros(400, np.float32)
    for logarithm, expected in (
        ("natural", np.log(0.25)),
        ("decimal", np.log10(0.25)),
        ("decibels", 10 * np.log10(0.25)),
    ):
        for added in (False, True):
            features = run(
                lambda node, logarithm=logarithm, added=added: fn.mel_features(
                    node, logarithm=logarithm, floor=0.25, floor_added=added
                ),
                signal,
            )
            assert features.shape == (1, 80)
            assert set(features.reshape(-1).tolist()) == {float(np.float32(expected))}


@pytest.mark.parametrize(
    ("samples", "arguments", "told"),
    [
        (399, {}, "at least 400 samples. Got the shape (399,)"),
        (400, {"freq_high": 9000.0}, "half the sample rate, 8000"),
        (400, {"nfft": 256}, "`nfft` at least `window_length`"),
        (400, {"power": 3}, "`power` must be 1 or 2"),
        (400, {"floor": 0.0}, "`floor` must be positive"),
    ],
)
def test_what_is_refused(samples: int, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("(", r"\(").replace(")", r"\)")):
        run(lambda node: fn.mel_features(node, **arguments), sound(samples))


def test_standardize_along_an_axis() -> None:
    data = np.random.default_rng(5).normal(3, 2, (30, 4)).astype(np.float32)
    rows = run(lambda node: fn.standardize(node, axis=0, ddof=1), data)
    np.testing.assert_array_equal(rows, (data - data.mean(0)) / np.sqrt(data.var(0, ddof=1) + 1e-7))
    centred = data - data.mean(0)
    again = run(lambda node: fn.standardize(node, axis=0, epsilon=0.0, recentred=True), data)
    np.testing.assert_array_equal(again, centred / centred.std(0))
    deviation = run(lambda node: fn.standardize(node, axis=1, epsilon=0.5, of_deviation=True), data)
    expected = (data - data.mean(1, keepdims=True)) / (data.std(1, keepdims=True) + np.float32(0.5))
    np.testing.assert_array_equal(deviation, expected)
    with pytest.raises(ValueError, match="`axis` must be from -2 to 1"):
        run(lambda node: fn.standardize(node, axis=2), data)
