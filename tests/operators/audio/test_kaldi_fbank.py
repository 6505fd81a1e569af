"""`kaldi_fbank` compared with `mel_features`, which computes the same in double precision, and with other calls of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import one_sample as run

from penstock import fn


def sound(samples: int) -> np.ndarray:
    return np.random.default_rng(samples).normal(0, 1000, samples).astype(np.float32)


@pytest.mark.parametrize(("window", "other"), [("povey", "povey"), ("hanning", "symmetric_hann"), ("hann", "hann")])
def test_bands_are_those_of_double_precision(window: str, other: str) -> None:
    signal = sound(3000)
    given = run(lambda node: fn.kaldi_fbank(node, num_bins=40, window_type=window), signal)
    expected = run(
        lambda node: fn.mel_features(
            node,
            nfilter=40,
            nfft=512,
            window=other,
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
    np.testing.assert_allclose(given, expected, atol=2e-4)


def test_signals_are_reflected_at_their_ends() -> None:
    signal = sound(1000)
    given = run(lambda node: fn.kaldi_fbank(node, snip_edges=False), signal)
    # The six windows begin 160 samples apart, and the first one begins 120 samples before the signal.
    reflected = np.concatenate([signal[:120][::-1], signal, signal[::-1][:200]])
    whole = run(fn.kaldi_fbank, reflected)
    np.testing.assert_array_equal(given, whole[:6])


def test_energies_and_magnitudes() -> None:
    signal = sound(400)
    energies = run(lambda node: fn.kaldi_fbank(node, use_log=False), signal)
    np.testing.assert_allclose(np.log(energies), run(fn.kaldi_fbank, signal), atol=1e-5)
    magnitudes = run(lambda node: fn.kaldi_fbank(node, use_log=False, use_power=False), signal)
    assert (magnitudes < energies).all()
    assert run(fn.kaldi_fbank, sound(399)).shape == (0, 23)
    silence = run(fn.kaldi_fbank, np.zeros(400, np.float32))
    assert set(silence.reshape(-1).tolist()) == {float(np.log(np.finfo(np.float32).eps).astype(np.float32))}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"num_bins": 2}, "must be at least 3"),
        ({"num_bins": 300}, "some contain no frequency"),
        ({"high_freq": 9000.0}, "between 0 and half the sample rate"),
        ({"preemphasis": 1.5}, "`preemphasis` must be from 0 to 1"),
        ({"frame_length_ms": 0.1}, "Got: 1 samples"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        run(lambda node: fn.kaldi_fbank(node, **arguments), sound(400))
