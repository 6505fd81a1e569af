"""Feature extractors of speech: Whisper and wav2vec 2.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock import fn, math, types
from penstock.graph import DataNode
from penstock.presets.family import Family, PresetError

# In Hz, whatever the sampling rate; and how far below the loudest value the others are cut off, in powers of ten.
_HIGHEST, _RANGE = 8000.0, 8.0
VALUES, MASK = "input_values", "attention_mask"


@dataclass(frozen=True, kw_only=True)
class SoundFamily(Family):
    """What they share.

    Attributes:
        sampling_rate: of the sound, in Hz.
        padding_value: what there is behind its end.
        padding_side: where: `right`.
        return_attention_mask: whether a mask tells sound from padding.
    """

    padding: ClassVar[object] = False
    """How far a call of the processor fills sounds, if it does not say it: see :class:`plugin.transformers.FeatureExtractor`."""
    truncation: ClassVar[bool] = False
    """Whether a call cuts sounds off, if it does not say it."""

    sampling_rate: int = 16000
    padding_value: float = 0.0
    padding_side: str = "right"
    return_attention_mask: bool = False

    kind = "audio"

    @property
    def on_host(self) -> bool:
        return True

    @property
    def most(self) -> int | None:
        """To how many samples sounds are cut off or filled, if that is told."""
        return None

    def check(self, backend: str) -> None:
        if self.padding_side != "right":
            raise PresetError(f"`padding_side` is followed to the right. Got: {self.padding_side!r}")


@dataclass(frozen=True, kw_only=True)
class WhisperFamily(SoundFamily):
    """Whisper: the logarithm of a mel spectrogram of so many seconds.

    Attributes:
        feature_size: mel filters.
        hop_length, n_fft: of the transform, in samples.
        chunk_length: in seconds.
        max_length: so many samples are taken instead.
        nb_max_frames, n_samples: follow from the others; checked.
        mel_filters: ignored: computed.
    """

    feature_size: int = 80
    hop_length: int = 160
    n_fft: int = 400
    chunk_length: int = 30
    max_length: int = 0
    nb_max_frames: int = 0
    n_samples: int = 0
    mel_filters: object = None

    padding = "max_length"
    truncation = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("input_features", *(MASK,) * self.return_attention_mask)

    @property
    def most(self) -> int:
        return self.max_length or self.chunk_length * self.sampling_rate

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.padding_value:
            raise PresetError(f"`padding_value` is followed where it is 0. Got: {self.padding_value}")
        if self.most <= self.n_fft // 2:
            raise PresetError(f"`max_length`: {self.most} samples are too few for a transform of {self.n_fft}")
        samples = self.chunk_length * self.sampling_rate
        for name, wanted in (("n_samples", samples), ("nb_max_frames", samples // self.hop_length)):
            if getattr(self, name) not in (0, wanted):
                raise PresetError(f"`{name}`: {wanted} follows from the other settings. Got: {getattr(self, name)}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        signal = self._filled(data)
        angles = np.arange(self.n_fft, dtype=np.float64) * (2 * np.pi / self.n_fft)
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
        # A quarter of the logarithm to base 10, of at least 1e-10, and of 4 more; the last window is left out.
        logarithms = fn.to_decibels(mel, multiplier=0.25, reference=1e-4, cutoff_db=-1.5)[
            :, : self.most // self.hop_length
        ]
        most = fn.reductions.max(logarithms)
        features = fn.cast(math.max(logarithms, most - _RANGE / 4), dtype=types.FLOAT, name=self.outputs[0])
        return (features, *self._masks(data))

    def _masks(self, data: DataNode) -> tuple[DataNode, ...]:
        if not self.return_attention_mask:
            return ()
        return (fn.copy(self._filled(fn.ones_like(data, dtype=types.INT32)), name=MASK),)

    def _filled(self, signal: DataNode) -> DataNode:
        return fn.slice(signal, start=[0], shape=[self.most], axes=[0], out_of_bounds_policy="pad")


@dataclass(frozen=True, kw_only=True)
class WaveFamily(SoundFamily):
    """wav2vec 2.0 and its relatives: the sound itself, with mean 0 and variance 1.

    Attributes:
        feature_size: 1.
        do_normalize: whether mean and variance are changed.
    """

    feature_size: int = 1
    do_normalize: bool = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return (VALUES, *(MASK,) * self.return_attention_mask)

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.feature_size != 1:
            raise PresetError(f"`feature_size` is 1. Got: {self.feature_size}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        values = (fn.standardize if self.do_normalize else fn.copy)(data, name=VALUES)
        masks = (fn.ones_like(data, dtype=types.INT32, name=MASK),) if self.return_attention_mask else ()
        return (values, *masks)
