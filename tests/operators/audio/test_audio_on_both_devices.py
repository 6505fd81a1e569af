"""Audio operators give the same results on CPU and GPU, for signals of all lengths, including empty ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from devices import Define, check_close

from penstock import fn, types

# Only with --exhaustive: in the default run, `tests/sweeps` compares CPU and GPU.
pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("with_gpu")]

_RNG = np.random.default_rng(1)


def _sound(count: int, channels: int | None = None) -> np.ndarray:
    shape = (count,) if channels is None else (count, channels)
    times = np.arange(count).reshape(count, *(1,) * (len(shape) - 1)) / 8000
    return (0.4 * np.sin(2000 * times**2 + 900 * times) + 0.3 * (_RNG.random(shape) - 0.5)).astype(np.float32)


_SIGNALS = [_sound(count) for count in (9000, 1, 700)]
_SOME_EMPTY = [_sound(count) for count in (0, 5000, 3)]
_STEREO = [_sound(count, 2) for count in (0, 900, 1300)]
_QUIET = np.zeros(4500, np.float32)
_QUIET_ENDS = [np.concatenate([_QUIET, _sound(3000), _QUIET]), _sound(0), _QUIET]


def _given(samples: Sequence[np.ndarray], device: str, dtype: Any = np.float32) -> Any:
    """Return a source of the signals in type ``dtype``; for an integer type, they are scaled to most of its range."""
    most = 1 if np.dtype(dtype).kind == "f" else 0.9 * np.iinfo(dtype).max
    middle = most / 2 if np.dtype(dtype).kind == "u" else 0
    converted = [(signal * (most - middle) + middle).astype(dtype) for signal in samples]
    node = fn.external_source(lambda: converted)
    return node.gpu() if device == "gpu" else node


def _spectra(device: str, **settings: Any) -> Any:
    """Return spectra scaled to a maximum of 1, so that a tolerance is relative to the maximum."""
    spectra = fn.spectrogram(_given(_SIGNALS, device), **settings)
    return spectra / fn.reductions.max(spectra)


def _mel(device: str, layout: str, **settings: Any) -> Any:
    spectra = fn.spectrogram(_given(_SIGNALS, device), layout=layout, nfft=500, window_length=400)
    return fn.mel_filter_bank(spectra * 1e-3, sample_rate=16000.0, **settings)


def _region(device: str, dtype: Any = np.float32, **settings: Any) -> Any:
    return fn.stack(*fn.nonsilent_region(_given(_QUIET_ENDS, device, dtype), **settings))


CLOSE: dict[str, Define] = {
    "spectra": lambda device: _spectra(device),
    "spectra, time first": lambda device: _spectra(device, window_length=300, nfft=1000, window_step=77, layout="tf"),
    "spectra, silence around": lambda device: _spectra(device, window_length=96, window_step=31, reflect_padding=False),
    "spectra of an odd number": lambda device: _spectra(device, window_length=315, window_step=100, power=1),
    "spectra of a prime": lambda device: _spectra(device, window_length=101, window_step=100),
    "spectra of twice a prime": lambda device: _spectra(device, window_length=202, window_step=100),
    "spectra of three": lambda device: _spectra(device, window_length=3, window_step=2),
    "large spectra": lambda device: _spectra(device, window_length=2048, nfft=4096, window_step=500),
    "larger spectra than blocks can share": lambda device: _spectra(device, window_length=8192, window_step=90),
    "bands": lambda device: _mel(device, "ft"),
    "few bands, time first": lambda device: _mel(device, "tf", nfilter=9, normalize=False),
    "cepstra": lambda device: fn.mfcc(_mel(device, "ft"), n_mfcc=13, lifter=22.0, normalize=True),
    "cepstra along time": lambda device: fn.mfcc(_mel(device, "tf"), axis=0, n_mfcc=7, dct_type=3),
    "decibels": lambda device: fn.to_decibels(_given(_SOME_EMPTY, device)),
    "decibels of a reference": lambda device: fn.to_decibels(
        _given(_SOME_EMPTY, device), reference=0.2, multiplier=20.0, cutoff_db=-50.0
    ),
    "preemphasis": lambda device: fn.preemphasis_filter(
        _given(_STEREO, device), preemph_coeff=fn.random.uniform(range=[0.5, 0.9], seed=3)
    ),
    "preemphasis to int16": lambda device: fn.preemphasis_filter(
        _given(_SIGNALS, device, np.int16), border="reflect", dtype=types.INT16
    ),
    "preemphasis in double precision": lambda device: fn.preemphasis_filter(
        _given(_SIGNALS, device, np.float64), border="zero", dtype=types.FLOAT64
    ),
    "loud region": lambda device: _region(device, cutoff_db=-30.0),
    "loud region, short window": lambda device: _region(device, np.int16, window_length=7, reset_interval=70),
    "loud region, long window": lambda device: _region(device, window_length=5000, reset_interval=-1, cutoff_db=-9.0),
    "loud region, reference": lambda device: _region(device, np.int32, reference_power=1e16, cutoff_db=-3.0),
    "resampled": lambda device: fn.audio_resample(_given(_SOME_EMPTY, device), scale=0.73),
    "resampled channels": lambda device: fn.audio_resample(_given(_STEREO, device), scale=1.9, quality=90.0),
    "resampled int16": lambda device: fn.audio_resample(
        _given(_SIGNALS, device, np.int16), in_rate=44100.0, out_rate=16000.0
    ),
    "resampled uint8 to real numbers": lambda device: fn.audio_resample(
        _given(_STEREO, device, np.uint8), scale=1.5, quality=10.0, dtype=types.FLOAT
    ),
    "resampled int8 to uint16": lambda device: fn.audio_resample(
        _given(_STEREO, device, np.int8), scale=0.5, dtype=types.UINT16
    ),
}
"""Cases whose results may differ between devices: integers by at most 1, real numbers by at most 1e-5."""


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    check_close(CLOSE[name])
