"""Feature extractors of speech: Whisper and wav2vec 2.0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.math import clamp
from penstock.presets.family import Family, Features, PresetError, Values, extended

# In Hz, whatever the sampling rate; and how far below the loudest value the others are cut off, in powers of ten.
_HIGHEST, _RANGE = 8000.0, 8.0
_VALUES, _MASK = "input_values", "attention_mask"


@dataclass(frozen=True, kw_only=True)
class _SoundFamily(Family):
    """What they share.

    Attributes:
        sampling_rate: of the sound, in Hz.
        padding_value: what there is behind its end.
        padding_side: where: `right`.
        return_attention_mask: whether a mask tells sound from padding.
    """

    sampling_rate: int = 16000
    padding_value: float = 0.0
    padding_side: str = "right"
    return_attention_mask: bool = False

    kind = "audio"

    @property
    def on_host(self) -> bool:
        return True

    def check(self, backend: str) -> None:
        if self.padding_side != "right" or self.padding_value:
            raise PresetError("`padding_side` is followed to the right, and `padding_value` where it is 0")


@dataclass(frozen=True, kw_only=True)
class WhisperFamily(_SoundFamily):
    """Whisper: the logarithm of a mel spectrogram of so many seconds.

    Attributes:
        feature_size: mel filters.
        hop_length, n_fft: of the transform, in samples.
        chunk_length: in seconds.
        nb_max_frames, n_samples: follow from these; checked.
        mel_filters: ignored: computed.
    """

    feature_size: int = 80
    hop_length: int = 160
    n_fft: int = 400
    chunk_length: int = 30
    nb_max_frames: int = 0
    n_samples: int = 0
    mel_filters: object = None

    names = ("input_features",)

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.return_attention_mask:
            raise PresetError("`return_attention_mask`: no preset of Whisper gives masks")
        samples = self.chunk_length * self.sampling_rate
        for name, wanted in (("n_samples", samples), ("nb_max_frames", samples // self.hop_length)):
            if getattr(self, name) not in (0, wanted):
                raise PresetError(f"`{name}`: {wanted} follows from the other settings. Got: {getattr(self, name)}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        samples = self.chunk_length * self.sampling_rate
        signal = fn.slice(data, start=[0], shape=[samples], axes=[0], out_of_bounds_policy="pad")
        angles = np.arange(self.n_fft, dtype=np.float64) * (2 * math.pi / self.n_fft)
        power = fn.spectrogram(
            signal,
            nfft=self.n_fft,
            window_length=self.n_fft,
            window_step=self.hop_length,
            window_fn=(0.5 - 0.5 * np.cos(angles)).tolist(),
        )
        mel = fn.mel_filter_bank(
            power, nfilter=self.feature_size, sample_rate=float(self.sampling_rate), freq_low=0.0, freq_high=_HIGHEST
        )
        # The logarithm to base 10, of at least 1e-10; the last window is left out.
        logarithms = fn.to_decibels(mel, multiplier=1.0, reference=1.0, cutoff_db=-10.0)[
            :, : samples // self.hop_length
        ]
        most = fn.reductions.max(logarithms)
        bounded = clamp(logarithms, most - _RANGE, most)
        return (fn.cast((bounded + 4.0) * 0.25, dtype=types.FLOAT, name=self.names[0]),)


@dataclass(frozen=True, kw_only=True)
class WaveFamily(_SoundFamily):
    """wav2vec 2.0 and its relatives: the sound itself, with mean 0 and variance 1.

    Attributes:
        feature_size: 1.
        do_normalize: whether mean and variance are changed.
    """

    feature_size: int = 1
    do_normalize: bool = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return (_VALUES, *(_MASK,) * self.return_attention_mask)

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.feature_size != 1:
            raise PresetError(f"`feature_size` is 1. Got: {self.feature_size}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        values = (fn.standardize if self.do_normalize else fn.copy)(data, name=_VALUES)
        masks = (fn.ones_like(data, dtype=types.INT32, name=_MASK),) if self.return_attention_mask else ()
        return (values, *masks)

    def joined(self, images: Sequence[Features]) -> Values:
        return {name: extended([image[name] for image in images], (0,)) for name in self.outputs}
