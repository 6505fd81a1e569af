"""Recipes for log-mel spectrograms in pipelines; as a program, records the results of librosa and torchaudio for the tests.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/log_mel.py

It needs librosa and torchaudio, which `.venv-parity` does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from penstock import fn
from penstock.graph import DataNode

RECORDED = Path(__file__).parent / "recorded" / "log_mel.npz"
RATE = 16000


def sound() -> np.ndarray:
    """Return half a second of a rising tone, with noise."""
    times = np.arange(8000) / RATE
    tone = 0.3 * np.sin(2 * np.pi * (200 + 900 * times) * times)
    return (tone + np.random.default_rng(6).normal(0, 0.02, len(times))).astype(np.float32)


def like_librosa(audio: DataNode) -> DataNode:
    """Return `librosa.power_to_db(librosa.feature.melspectrogram(y=audio, sr=16000, n_fft=512, hop_length=160),
    top_db=None)`.
    """
    return fn.mel_features(
        audio,
        sample_rate=16000.0,
        window_length=512,
        window_step=160,
        nfilter=128,
        normalize=True,
        center_windows=True,
        reflect_padding=False,
        logarithm="decibels",
        layout="ft",
    )


def like_torchaudio(audio: DataNode) -> DataNode:
    """Return `AmplitudeToDB()(MelSpectrogram(16000, n_fft=512, win_length=400, hop_length=160, n_mels=80)(audio))`."""
    return fn.mel_features(
        audio,
        sample_rate=16000.0,
        window_length=400,
        window_step=160,
        nfft=512,
        nfilter=80,
        mel_formula="htk",
        center_windows=True,
        logarithm="decibels",
        layout="ft",
    )


RECIPES: dict[str, Callable[[DataNode], DataNode]] = {"librosa": like_librosa, "torchaudio": like_torchaudio}


def main() -> None:
    """Record the libraries' results."""
    import librosa
    import torch
    from torchaudio.transforms import AmplitudeToDB, MelSpectrogram

    signal = sound()
    energies = librosa.feature.melspectrogram(y=signal, sr=RATE, n_fft=512, hop_length=160)
    decibels = librosa.power_to_db(energies, top_db=None)
    transform = MelSpectrogram(RATE, n_fft=512, win_length=400, hop_length=160, n_mels=80)
    of_torch = AmplitudeToDB()(transform(torch.from_numpy(signal))).numpy()
    np.savez_compressed(RECORDED, librosa=decibels, torchaudio=of_torch)


if __name__ == "__main__":
    main()
