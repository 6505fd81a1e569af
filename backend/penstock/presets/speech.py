"""Feature extractors of sound: Whisper, wav2vec 2.0, SpeechT5, codecs (Encodec, DAC), Gemma 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock import fn, math, types
from penstock.graph import DataNode
from penstock.presets.family import Family, PresetError

# The upper edge of the bands in Hz, at any sampling rate; the dynamic range of values as a power of ten.
_MAX_HZ, _DYNAMIC_RANGE_LOG10 = 8000.0, 8.0
VALUES, MASK = "input_values", "attention_mask"
FEATURES, FEATURES_MASK, PADDING_MASK = "input_features", "input_features_mask", "padding_mask"


@dataclass(frozen=True, kw_only=True)
class SoundFamily(Family):
    """Base class of families of sounds.

    Attributes:
        sampling_rate: the sampling rate of sounds, in Hz.
        padding_value: the value with which sounds are padded.
        padding_side: must be `right`.
        return_attention_mask: whether to return a mask that distinguishes sound from padding.
    """

    padding: ClassVar[object] = False
    """The default of a call's argument `padding`, which says to which length sounds are padded: see
    :class:`plugin.transformers.FeatureExtractor`.
    """
    truncation: ClassVar[bool] = False
    """Whether a call cuts sounds off by default."""

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
        """The number of samples to which sounds are cut off or padded; None: there is no such number."""
        return None

    def check(self, backend: str) -> None:
        if self.padding_side != "right":
            raise PresetError(f"`padding_side` must be 'right'. Got: {self.padding_side!r}")


@dataclass(frozen=True, kw_only=True)
class WhisperFamily(SoundFamily):
    """Whisper: the logarithm of a mel spectrogram of a fixed duration.

    Attributes:
        feature_size: the number of mel filters.
        hop_length, n_fft: the hop length and FFT size of the transform, in samples.
        chunk_length: the fixed duration, in seconds.
        max_length: the number of samples, instead of `chunk_length`.
        nb_max_frames, n_samples: must have the values that follow from the other settings, or 0.
        mel_filters: accepted without effect: mel filters are computed.
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
        return (FEATURES, *(MASK,) * self.return_attention_mask)

    @property
    def most(self) -> int:
        return self.max_length or self.chunk_length * self.sampling_rate

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.padding_value:
            raise PresetError(f"`padding_value` is supported only where it is 0. Got: {self.padding_value}")
        if self.most <= self.n_fft // 2:
            raise PresetError(f"`max_length`: {self.most} samples are too few for a transform of {self.n_fft}")
        samples = self.chunk_length * self.sampling_rate
        for name, wanted in (("n_samples", samples), ("nb_max_frames", samples // self.hop_length)):
            if getattr(self, name) not in (0, wanted):
                raise PresetError(
                    f"`{name}` must be {wanted}, which follows from the other settings. Got: {getattr(self, name)}"
                )

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
            power,
            nfilter=self.feature_size,
            sample_rate=float(self.sampling_rate),
            freq_low=0.0,
            freq_high=_MAX_HZ,
            reference="librosa",
        )
        # This computes (log10(max(x, 1e-10)) + 4) / 4, and drops the last window.
        logarithms = fn.to_decibels(mel, multiplier=0.25, reference=1e-4, cutoff_db=-1.5)[
            :, : self.most // self.hop_length
        ]
        maximum = fn.reductions.max(logarithms)
        features = fn.cast(
            math.max(logarithms, maximum - _DYNAMIC_RANGE_LOG10 / 4), dtype=types.FLOAT, name=self.outputs[0]
        )
        return (features, *self._masks(data))

    def _masks(self, data: DataNode) -> tuple[DataNode, ...]:
        if not self.return_attention_mask:
            return ()
        return (fn.copy(self._filled(fn.ones_like(data, dtype=types.INT32)), name=MASK),)

    def _filled(self, signal: DataNode) -> DataNode:
        return fn.slice(signal, start=[0], shape=[self.most], axes=[0], out_of_bounds_policy="pad")


@dataclass(frozen=True, kw_only=True)
class WaveFamily(SoundFamily):
    """wav2vec 2.0 and related models: the samples of the sound, by default normalized to mean 0 and variance 1.

    Attributes:
        feature_size: the number of channels; only 1 is supported.
        do_normalize: whether to normalize sounds.
    """

    feature_size: int = 1
    do_normalize: bool = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return (VALUES, *(MASK,) * self.return_attention_mask)

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.feature_size != 1:
            raise PresetError(f"`feature_size` must be 1. Got: {self.feature_size}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        values = (fn.standardize if self.do_normalize else fn.copy)(data, name=VALUES)
        masks = (fn.ones_like(data, dtype=types.INT32, name=MASK),) if self.return_attention_mask else ()
        return (values, *masks)


@dataclass(frozen=True, kw_only=True)
class SpeechT5Family(WaveFamily):
    """SpeechT5's inputs, without the target spectrograms that training needs.

    Attributes:
        ignored: the settings of target spectrograms.
    """

    do_normalize: bool = False
    return_attention_mask: bool = True
    ignored: frozenset[str] = frozenset(
        {
            "fmax",
            "fmin",
            "frame_signal_scale",
            "hop_length",
            "mel_floor",
            "num_mel_bins",
            "reduction_factor",
            "win_function",
            "win_length",
        }
    )

    hidden = frozenset({"ignored"})


@dataclass(frozen=True, kw_only=True)
class CodecFamily(SoundFamily):
    """Sounds for codecs: one channel, padded to whole blocks of the codec.

    Attributes:
        feature_size: the number of channels; only 1 is supported.
    """

    feature_size: int = 1

    padding = True
    always_masks: ClassVar[bool] = False
    """Whether a call that does not pad returns a mask, too."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (VALUES, PADDING_MASK)

    @property
    def multiple(self) -> int:
        """The number of samples to whose multiples sounds are padded."""
        return 1

    @property
    def chunks(self) -> tuple[int, int] | None:
        """The distance between the starts of chunks and the length of a chunk, in samples; None: sounds are not cut into chunks."""
        return None

    @property
    def around(self) -> tuple[int, int]:
        """The number of zeros before a sound, and after the padded sound."""
        return (0, 0)

    def chunked(self, samples: int) -> int | None:
        """Return the length, after padding to whole chunks, of a sound with this many samples; None if sounds are not cut into chunks."""
        if self.chunks is None:
            return None
        step, length = self.chunks
        return (-(-samples // step) - 1) * step + length

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.feature_size != 1:
            raise PresetError(
                f"`feature_size` must be 1: only sounds of one channel are supported. Got: {self.feature_size}"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        step, length = self.chunks or (self.multiple, self.multiple)
        before, behind = self.around
        steps = (data.shape()[:1] + (step - 1)) // step
        total = fn.cast(steps * step + (length - step + before + behind), dtype=types.INT32)

        def filled(signal: DataNode, value: float) -> DataNode:
            return fn.slice(
                signal, start=[-before], shape=total, axes=[0], out_of_bounds_policy="pad", fill_values=[value]
            )

        values = fn.reshape(filled(data, self.padding_value), shape=[1, -1], name=VALUES)
        return values, fn.copy(filled(fn.ones_like(data, dtype=types.INT32), 0), name=PADDING_MASK)


@dataclass(frozen=True, kw_only=True)
class DacFamily(CodecFamily):
    """DAC.

    Attributes:
        hop_length: the number of samples to whose multiples sounds are padded.
    """

    hop_length: int = 512

    @property
    def multiple(self) -> int:
        return self.hop_length

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.hop_length < 1:
            raise PresetError(f"`hop_length` must be positive. Got: {self.hop_length}")


@dataclass(frozen=True, kw_only=True)
class DiaFamily(DacFamily):
    """Dia, which always returns the mask."""

    always_masks = True


@dataclass(frozen=True, kw_only=True)
class EncodecFamily(CodecFamily):
    """EnCodec.

    Attributes:
        chunk_length_s: the length of a chunk in seconds; 0: no chunks.
        overlap: the overlap of consecutive chunks, as a fraction of a chunk's length; negative: no chunks.
    """

    sampling_rate: int = 24000
    chunk_length_s: float = 0.0
    overlap: float = -1.0

    @property
    def chunks(self) -> tuple[int, int] | None:
        if not self.chunk_length_s or self.overlap < 0:
            return None
        length = int(self.chunk_length_s * self.sampling_rate)
        return max(1, int((1.0 - self.overlap) * length)), length

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.chunk_length_s < 0 or self.overlap >= 1:
            raise PresetError(
                f"`chunk_length_s` must be positive, and `overlap` less than 1. Got: {self.chunk_length_s} and {self.overlap}"
            )


@dataclass(frozen=True, kw_only=True)
class KyutaiFamily(EncodecFamily):
    """Kyutai's speech to text: silence before and after the sound.

    Attributes:
        audio_silence_prefix_seconds: the seconds of silence before the sound.
        audio_delay_seconds: one second less than the silence after the sound, in seconds.
    """

    audio_silence_prefix_seconds: float = 0.0
    audio_delay_seconds: float = 0.0

    @property
    def around(self) -> tuple[int, int]:
        seconds = self.audio_silence_prefix_seconds, self.audio_delay_seconds + 1.0
        before, behind = (int(each * self.sampling_rate) for each in seconds)
        return before, behind

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.padding_value:
            raise PresetError(f"`padding_value` is supported only where it is 0. Got: {self.padding_value}")
        if min(self.audio_silence_prefix_seconds, self.audio_delay_seconds) < 0:
            raise PresetError("`audio_silence_prefix_seconds` and `audio_delay_seconds` must not be negative")


@dataclass(frozen=True, kw_only=True)
class SoundTokenFamily(SoundFamily):
    """Gemma 4 with a unified encoder: the sound itself, in pieces that become tokens.

    Attributes:
        feature_size, audio_samples_per_token: the number of samples of a piece; must be equal.
    """

    feature_size: int = 640
    audio_samples_per_token: int = 640

    padding = True
    truncation = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return (FEATURES, FEATURES_MASK)

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.feature_size == self.audio_samples_per_token > 1:
            raise PresetError(
                "`feature_size` and `audio_samples_per_token` must be equal, and greater than 1. "
                f"Got: {self.feature_size} and {self.audio_samples_per_token}"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        piece = self.audio_samples_per_token
        total = fn.cast((data.shape()[:1] + (piece - 1)) // piece * piece, dtype=types.INT32)
        filled = fn.slice(data, start=[0], shape=total, axes=[0], out_of_bounds_policy="pad")
        features = fn.reshape(filled, shape=[-1, piece], name=FEATURES)
        return features, fn.ones_like(features[:, 0], dtype=types.BOOL, name=FEATURES_MASK)
